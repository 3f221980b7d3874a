/*
 * What a generated model and the engine agree on, and the operators that models are written with.
 *
 * A model defines QM_WORDS, the 64-bit words of a state, and QM_BITS, the bits of a packet number, and has one function
 * for each step of each thread. A step takes a state and hands every state that it leads to to qm_emit(), in the order
 * of its alternatives.
 */
#ifndef QMODEL_H
#define QMODEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t w[QM_WORDS];
} qm_state;

/* A property that a step violated; from: which of the states that are being expanded. */
struct qm_event {
	uint32_t from;
	uint16_t property;
	uint8_t thread;
	uint8_t fatal;
};

/*
 * Takes what a step leads to. taken: for each step, by its number, whether it was ever taken. trap: 0, or the number of
 * a place in the model at which a value left the 64 bits or the bounds that it was given; what comes out is then worth
 * nothing.
 */
typedef struct qm_sink {
	qm_state *to;
	size_t count, room;
	struct qm_event *events;
	size_t event_count, event_room;
	uint8_t *taken;
	uint32_t from;
	uint32_t trap;
	void (*more)(struct qm_sink *out);
	void (*event)(struct qm_sink *out, unsigned property, unsigned thread, unsigned fatal);
} qm_sink;

/*
 * A program. Threads, properties and steps are numbered; deadlock, bound: properties that the engine itself knows.
 *
 * buffers: the threads that commit pending stores, one bit each. expand: takes every step of every thread, and tells
 * whether one of them waits for a lock in a way that could close a circle. observe: the properties that a state
 * violates, one bit each; values: what is measured, where `judged` has the measure's bit. waits_on: the thread that a
 * thread waits for, or -1. unfinished: whether a task has not ended.
 */
struct qm_model {
	uint32_t threads, steps, properties, measures, deadlock, bound;
	uint64_t buffers;
	unsigned (*expand)(const qm_state *s, qm_sink *out);
	unsigned (*step)(unsigned thread, const qm_state *s, qm_sink *out);
	uint64_t (*observe)(const qm_state *s, qm_sink *out, int64_t *values, uint64_t *judged);
	int (*waits_on)(unsigned thread, const qm_state *s, qm_sink *out);
	int (*unfinished)(const qm_state *s);
};

#define QM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define QM_RARE __attribute__((noinline, unused))
#define QM_LOCAL_STEPS 100000 /* a step that passes more places than this does not end */
#define QM_PICKS 64	      /* choices on one way through a step */

/* Notes that a step leads to a state. */
static inline void qm_emit(qm_sink *out, uint32_t step, const qm_state *t)
{
	out->taken[step] = 1;
	if (QM_UNLIKELY(out->count == out->room))
		out->more(out);
	out->to[out->count++] = *t;
}

/* Notes that a step violates a property. */
static QM_RARE void qm_fail(qm_sink *out, uint32_t step, unsigned property, unsigned thread, unsigned fatal)
{
	out->taken[step] = 1;
	out->event(out, property, thread, fatal);
}

static inline void qm_trap(qm_sink *out, uint32_t place)
{
	if (!out->trap)
		out->trap = place;
}

/*
 * The choices that a step made: it is run again for every alternative, the last choice varying fastest. A choice that
 * has not been made before takes its first alternative.
 */
typedef struct {
	unsigned made, used;
	int64_t pick[QM_PICKS], count[QM_PICKS];
} qm_picks;

static QM_RARE int64_t qm_choose(qm_sink *out, uint32_t place, qm_picks *picks, int64_t count)
{
	if (QM_UNLIKELY(picks->used == QM_PICKS)) {
		qm_trap(out, place);
		return 0;
	}
	if (picks->used == picks->made) {
		picks->pick[picks->made] = 0;
		picks->count[picks->made++] = count;
	}
	return picks->pick[picks->used++];
}

/* Goes on to the next alternative, and tells whether there is one. */
static QM_RARE int qm_again(qm_picks *picks)
{
	while (picks->made && picks->pick[picks->made - 1] + 1 == picks->count[picks->made - 1])
		picks->made--;
	picks->used = 0;
	return picks->made && ++picks->pick[picks->made - 1];
}

/* --- numbers: as in Python; what might leave 64 bits or its bounds is watched ------------------------------------- */

static inline int64_t qm_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t qm_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Rounds down. */
static inline int64_t qm_div(int64_t a, int64_t b)
{
	return a / b - (a % b && (a % b < 0) != (b < 0));
}

/* Has the sign of b. */
static inline int64_t qm_mod(int64_t a, int64_t b)
{
	return a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0);
}

static inline int64_t qm_left(int64_t a, int64_t n)
{
	return (int64_t)((uint64_t)a << n);
}

static inline int64_t qm_add_watched(qm_sink *out, uint32_t place, int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		qm_trap(out, place);
	return sum;
}

static inline int64_t qm_sub_watched(qm_sink *out, uint32_t place, int64_t a, int64_t b)
{
	int64_t difference;

	if (__builtin_sub_overflow(a, b, &difference))
		qm_trap(out, place);
	return difference;
}

static inline int64_t qm_mul_watched(qm_sink *out, uint32_t place, int64_t a, int64_t b)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		qm_trap(out, place);
	return product;
}

static inline int64_t qm_div_watched(qm_sink *out, uint32_t place, int64_t a, int64_t b)
{
	if (b == 0 || (a == INT64_MIN && b == -1)) {
		qm_trap(out, place);
		return 0;
	}
	return qm_div(a, b);
}

static inline int64_t qm_mod_watched(qm_sink *out, uint32_t place, int64_t a, int64_t b)
{
	if (b == 0) {
		qm_trap(out, place);
		return 0;
	}
	return b == -1 ? 0 : qm_mod(a, b);
}

static inline int64_t qm_left_watched(qm_sink *out, uint32_t place, int64_t a, int64_t n)
{
	if (n < 0 || (a && (n > 62 || a > INT64_MAX >> n || a < -(INT64_MAX >> n)))) {
		qm_trap(out, place);
		return 0;
	}
	return a ? qm_left(a, n) : 0;
}

static inline int64_t qm_right_watched(qm_sink *out, uint32_t place, int64_t a, int64_t n)
{
	if (n < 0)
		qm_trap(out, place);
	return a >> (n < 0 ? 0 : n > 63 ? 63 : n);
}

static inline int64_t qm_index(qm_sink *out, uint32_t place, int64_t index, int64_t size)
{
	if (QM_UNLIKELY(index < 0 || index >= size)) {
		qm_trap(out, place);
		return 0;
	}
	return index;
}

static inline int64_t qm_within(qm_sink *out, uint32_t place, int64_t value, int64_t low, int64_t high)
{
	if (QM_UNLIKELY(value < low || value > high)) {
		qm_trap(out, place);
		return low;
	}
	return value;
}

/* --- queues of packets: QM_BITS bits each, the head in the lowest, 0 behind the last ------------------------------- */

#ifdef QM_BITS
#define QM_MASK (((int64_t)1 << QM_BITS) - 1)

static inline int64_t q_len(int64_t q)
{
	return q ? (64 - __builtin_clzll((uint64_t)q) + QM_BITS - 1) / QM_BITS : 0;
}

static inline int64_t q_head(int64_t q)
{
	return q & QM_MASK;
}

static inline int64_t q_rest(int64_t q)
{
	return q >> QM_BITS;
}

static inline int64_t q_item(int64_t q, int64_t position)
{
	return position < (64 + QM_BITS - 1) / QM_BITS ? q >> QM_BITS * position & QM_MASK : 0;
}

static inline int64_t q_push(int64_t q, int64_t packet)
{
	return qm_left(q, QM_BITS) | packet;
}

static inline int64_t q_append(int64_t q, int64_t tail)
{
	return q | (tail ? qm_left(tail, QM_BITS * q_len(q)) : 0);
}

static inline int64_t q_has(int64_t packet, int64_t q)
{
	for (; q; q >>= QM_BITS)
		if ((q & QM_MASK) == packet)
			return 1;
	return 0;
}

static inline int64_t q_reverse(int64_t q)
{
	int64_t result = 0;

	for (; q; q >>= QM_BITS)
		result = qm_left(result, QM_BITS) | (q & QM_MASK);
	return result;
}

static inline int64_t q_push_watched(qm_sink *out, uint32_t place, int64_t q, int64_t packet)
{
	if (QM_UNLIKELY(QM_BITS * (q_len(q) + 1) > 63)) {
		qm_trap(out, place);
		return 0;
	}
	return q_push(q, packet);
}

static inline int64_t q_append_watched(qm_sink *out, uint32_t place, int64_t q, int64_t tail)
{
	if (QM_UNLIKELY(tail && QM_BITS * (q_len(q) + q_len(tail)) > 63)) {
		qm_trap(out, place);
		return 0;
	}
	return q_append(q, tail);
}

static inline int64_t q_reverse_watched(qm_sink *out, uint32_t place, int64_t q)
{
	if (QM_UNLIKELY(QM_BITS * q_len(q) > 63)) {
		qm_trap(out, place);
		return 0;
	}
	return q_reverse(q);
}
#endif

#endif
