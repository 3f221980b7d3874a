/*
 * Breadth-first search over packed states, and the shortest ways to what it found. It knows no model: what a step does
 * and what a state violates it asks a struct qm_model, whose states have QM_WORDS words.
 *
 * All states stand in one arena, in the order in which they were found. The arena is the queue of the search and its
 * memory at once: a layer (the states at one depth) is a range of it. The states are told apart by a hash table of
 * 32-bit entries: the number of a state in the low bits, and in the bits that are left a part of its hash, so that most
 * states that differ are told apart without a look at them. No parent is stored: ways are found backwards through the
 * layers, by taking their steps again.
 *
 * States are expanded by workers. Which of the states that they lead to are new is found out by all workers as well, each
 * for its own regions of the table; then the new ones are numbered in the order in which one worker would have found
 * them, so that nothing depends on how many workers there are.
 */
#include "qmodel.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum status {
	QM_MORE,      /* the slice is used up */
	QM_DONE,      /* nothing is left to do */
	QM_FULL,      /* the limit of states is reached */
	QM_STOPPED,   /* a property is violated, and the search was to stop then */
	QM_NO_MEMORY, /* the memory that may be used is used up */
	QM_CROWDED,   /* there are more states than can be numbered */
	QM_TRAPPED,   /* the model left what C can do: see struct qm_figures */
};

/* How far a search is. memory, peak: bytes in use now, and the most there ever were. */
struct qm_figures {
	uint64_t states, transitions, cut, bound, frontier, memory, peak;
	uint32_t depth, trap;
};

#define LOOK 2048		 /* states that are expanded between two looks at the limits */
#define BATCH 16		 /* states that one worker alone expands before it looks up where they lead */
#define ALONE 256		 /* fewer states are expanded by one worker alone */
#define GROUP 64		 /* successors that are looked up together */
#define BLOCK_BITS 13		 /* the arena grows by so many states */
#define BLOCK (1u << BLOCK_BITS)
#define TABLE_BITS 16		 /* the table begins with so many entries */
#define REGION_BITS 6		 /* so many regions does it have; a search for a state stays within one */
#define WORKERS 64
#define PATIENCE 1000		 /* looks before a worker sleeps */
#define MOST (UINT32_MAX - 1)	 /* states that can be numbered */
#define NONE UINT32_MAX
#define THREADS 64
#define NOBODY (-1)
#define EVERYBODY UINT64_MAX

struct list {
	uint32_t *at;
	size_t count, room;
};

/*
 * What a shortest way is wanted to: all states at depth `length`, and all steps (two numbers each: state and thread)
 * from states at depth length - 1. length is NONE where nothing was found.
 */
struct goal {
	uint32_t length;
	struct list states, steps;
};

struct best {
	int64_t value;
	struct goal goal;
};

/* What is to be said of a state: what it violates, what is measured in it, whether threads wait in a circle. */
struct look {
	uint64_t bad, judged;
	int stuck;
};

struct worker {
	qm_sink out; /* first, so that a pointer to it is one to the worker */
	struct qm_engine *engine;
	unsigned number;
	uint64_t *hash;	      /* of each successor */
	uint32_t *slot;	      /* of each successor where it stands in the table, NONE if it was known */
	uint8_t *taken;	      /* steps, as the sink notes them */
	struct look looks[LOOK];
	int64_t *values;      /* for each state all measures */
	uint32_t from, count; /* states to expand */
	uint64_t transitions;
	uint64_t offset;      /* successors of the workers before it */
	uint32_t first;	      /* the number of its first new state */
	uint32_t found[WORKERS]; /* new states that it found among the successors of each worker */
	int failed;
	pthread_t thread;
};

/* A state on a shortest way: the switches that are left, and the threads that may have moved last without one more. */
struct record {
	uint32_t state, cost;
	uint64_t last;
};

/* A goal on the way backwards. */
struct sweep {
	const struct goal *goal;
	struct record *records; /* by depth, the last depth first; within a depth by state */
	size_t count, room;
	size_t *first;		 /* for each depth the number of its first record; it ends where depth - 1 begins */
	uint32_t *here, *beyond; /* for each state of this layer and of the next 1 + the number of its record, or 0 */
};

struct qm_engine {
	const struct qm_model *model;
	size_t budget, used, peak;

	qm_state **blocks;
	size_t block_count, block_room;
	uint32_t *table;
	unsigned table_bits;

	uint64_t states, transitions, cut, bound;
	uint32_t begin, end, next; /* the layer that is being expanded, and the state that is expanded next */
	uint32_t depth;
	struct list layers; /* the first state of each */
	uint32_t trap;

	uint8_t *taken; /* steps */
	struct goal *goals;
	struct best *bests;

	struct sweep *sweeps;
	size_t sweep_count, layer_room;
	uint32_t back_depth, back_next, back_end; /* the depth that the sweeps are at, and the states still to look at */
	size_t ends[BATCH * THREADS];		  /* for each of these states and thread, where its successors end */
	struct list trail, origin, movers;	  /* of a walk: states, where in the trail each comes from, who moved */

	unsigned worker_count;
	struct worker **workers;
	pthread_mutex_t mutex;
	pthread_cond_t work, rest;
	uint64_t round;	   /* how often work was given out */
	unsigned busy;	   /* workers that are at it */
	int leaving;
	int running;	   /* the mutex and the conditions exist */
	void (*job)(struct worker *);
};

/* --- memory -------------------------------------------------------------------------------------------------------- */

/* Like realloc(), within the budget. Workers call it too. */
static void *grow(struct qm_engine *e, void *old, size_t was, size_t want)
{
	size_t used, peak;
	void *now;

	if (want > was) {
		used = __atomic_add_fetch(&e->used, want - was, __ATOMIC_RELAXED);
		if (used > e->budget) {
			__atomic_sub_fetch(&e->used, want - was, __ATOMIC_RELAXED);
			return NULL;
		}
		peak = __atomic_load_n(&e->peak, __ATOMIC_RELAXED);
		while (used > peak &&
		       !__atomic_compare_exchange_n(&e->peak, &peak, used, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
	}
	now = realloc(old, want);
	if (!now && want > was)
		__atomic_sub_fetch(&e->used, want - was, __ATOMIC_RELAXED);
	return now;
}

static void *fresh(struct qm_engine *e, size_t bytes)
{
	void *now = grow(e, NULL, 0, bytes ? bytes : 1);

	if (now)
		memset(now, 0, bytes);
	return now;
}

static void drop(struct qm_engine *e, void *old, size_t bytes)
{
	if (old)
		__atomic_sub_fetch(&e->used, bytes ? bytes : 1, __ATOMIC_RELAXED);
	free(old);
}

/* Makes room for one more element, and returns whether there is. */
static int widen(struct qm_engine *e, void *array, size_t count, size_t *room, size_t bytes)
{
	size_t want = *room ? *room * 2 : 16;
	void **at = array;
	void *now;

	if (count < *room)
		return 1;
	now = grow(e, *at, *room * bytes, want * bytes);
	if (!now)
		return 0;
	*at = now;
	*room = want;
	return 1;
}

static int push(struct qm_engine *e, struct list *list, uint32_t number)
{
	if (!widen(e, &list->at, list->count, &list->room, sizeof(*list->at)))
		return 0;
	list->at[list->count++] = number;
	return 1;
}

/* --- states -------------------------------------------------------------------------------------------------------- */

static inline qm_state *state_at(const struct qm_engine *e, uint32_t number)
{
	return &e->blocks[number >> BLOCK_BITS][number & (BLOCK - 1)];
}

static inline int same(const qm_state *a, const qm_state *b)
{
	uint64_t difference = 0;

	for (int i = 0; i < QM_WORDS; i++)
		difference |= a->w[i] ^ b->w[i];
	return !difference;
}

static inline uint64_t hash_of(const qm_state *s)
{
	uint64_t h = 0;

	for (int i = 0; i < QM_WORDS; i++) {
		h = (h ^ s->w[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

/* The low bits of an entry, which hold 1 + the number of a state. */
static inline uint32_t number_mask(const struct qm_engine *e)
{
	return (uint32_t)((UINT64_C(1) << e->table_bits) - 1);
}

/* The other bits of an entry. */
static inline uint32_t tag_of(const struct qm_engine *e, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & ~number_mask(e);
}

static inline size_t slot_of(const struct qm_engine *e, uint64_t hash)
{
	return hash & number_mask(e);
}

/* The slot after another, in the same region. */
static inline size_t slot_after(const struct qm_engine *e, size_t slot)
{
	size_t mask = number_mask(e) >> REGION_BITS;

	return (slot & ~mask) | ((slot + 1) & mask);
}

static inline unsigned region_of(const struct qm_engine *e, uint64_t hash)
{
	return slot_of(e, hash) >> (e->table_bits - REGION_BITS);
}

static inline void prefetch_slot(const struct qm_engine *e, uint64_t hash)
{
	__builtin_prefetch(&e->table[slot_of(e, hash)]);
}

/* Fetches the state that a look-up will most likely be compared with. */
static inline void prefetch_state(const struct qm_engine *e, uint64_t hash)
{
	uint32_t mask = number_mask(e), tag = tag_of(e, hash), entry;

	for (size_t i = slot_of(e, hash); (entry = e->table[i]) != 0; i = slot_after(e, i))
		if ((entry & ~mask) == tag) {
			__builtin_prefetch(state_at(e, (entry & mask) - 1));
			return;
		}
}

/* Returns the slot of a state, or the free one where it belongs. */
static inline size_t look_up(const struct qm_engine *e, const qm_state *s, uint64_t hash)
{
	uint32_t mask = number_mask(e), tag = tag_of(e, hash), entry;
	size_t i;

	for (i = slot_of(e, hash); (entry = e->table[i]) != 0; i = slot_after(e, i))
		if ((entry & ~mask) == tag && same(state_at(e, (entry & mask) - 1), s))
			break;
	return i;
}

/* Returns the number of a state, or NONE. */
static inline uint32_t find(const struct qm_engine *e, const qm_state *s, uint64_t hash)
{
	uint32_t entry = e->table[look_up(e, s, hash)];

	return entry ? (entry & number_mask(e)) - 1 : NONE;
}

static enum status enlarge(struct qm_engine *e, unsigned bits)
{
	size_t was = sizeof(*e->table) << e->table_bits;
	uint32_t *old = e->table;
	uint64_t hash[BATCH];
	uint32_t first;
	unsigned n;
	size_t at;

	if (bits > 32)
		return QM_CROWDED;
	e->table = fresh(e, sizeof(*e->table) << bits);
	if (!e->table) {
		e->table = old;
		return QM_NO_MEMORY;
	}
	e->table_bits = bits;
	for (first = 0; first < e->states; first += n) {
		n = e->states - first < BATCH ? e->states - first : BATCH;
		for (unsigned i = 0; i < n; i++) {
			hash[i] = hash_of(state_at(e, first + i));
			prefetch_slot(e, hash[i]);
		}
		for (unsigned i = 0; i < n; i++) {
			for (at = slot_of(e, hash[i]); e->table[at]; at = slot_after(e, at))
				;
			e->table[at] = tag_of(e, hash[i]) | (first + i + 1);
		}
	}
	drop(e, old, was);
	return QM_MORE;
}

/* Makes room for more states. The table is at most 5/8 full. */
static enum status make_room(struct qm_engine *e, size_t more)
{
	uint64_t want = e->states + more;
	unsigned bits = e->table_bits;
	qm_state *block;

	if (want > MOST)
		return QM_CROWDED;
	while (want > (UINT64_C(5) << bits) / 8)
		bits++;
	if (bits > e->table_bits) {
		enum status status = enlarge(e, bits);

		if (status != QM_MORE)
			return status;
	}
	while (want > (uint64_t)e->block_count << BLOCK_BITS) {
		if (!widen(e, &e->blocks, e->block_count, &e->block_room, sizeof(*e->blocks)))
			return QM_NO_MEMORY;
		block = grow(e, NULL, 0, sizeof(*block) << BLOCK_BITS);
		if (!block)
			return QM_NO_MEMORY;
		e->blocks[e->block_count++] = block;
	}
	return QM_MORE;
}

/* --- expanding ----------------------------------------------------------------------------------------------------- */

static void more_successors(qm_sink *out)
{
	struct worker *w = (struct worker *)out;
	struct qm_engine *e = w->engine;
	size_t want = out->room ? out->room * 2 : 256;
	qm_state *to = grow(e, out->to, out->room * sizeof(*to), want * sizeof(*to));
	uint64_t *hash = grow(e, w->hash, out->room * sizeof(*hash), want * sizeof(*hash));
	uint32_t *slot = grow(e, w->slot, out->room * sizeof(*slot), want * sizeof(*slot));

	out->to = to ? to : out->to;
	w->hash = hash ? hash : w->hash;
	w->slot = slot ? slot : w->slot;
	if (to && hash && slot) {
		out->room = want;
		return;
	}
	w->failed = 1;
	out->count = 0;
}

static void add_event(qm_sink *out, unsigned property, unsigned thread, unsigned fatal)
{
	struct worker *w = (struct worker *)out;
	struct qm_event *event;

	if (!widen(w->engine, &out->events, out->event_count, &out->event_room, sizeof(*event))) {
		w->failed = 1;
		return;
	}
	event = &out->events[out->event_count++];
	event->from = out->from;
	event->property = property;
	event->thread = thread;
	event->fatal = fatal;
}

/* Tells whether threads wait for each other in a circle. */
static int circle(const struct qm_model *model, const qm_state *s, qm_sink *out)
{
	int waits_on[THREADS], threads = model->threads, here, n;

	for (int t = 0; t < threads; t++)
		waits_on[t] = model->waits_on(t, s, out);
	for (int t = 0; t < threads; t++) {
		for (here = t, n = 0; here >= 0 && here < threads && n <= threads; n++)
			here = waits_on[here];
		if (n > threads)
			return 1;
	}
	return 0;
}

/* Expands the states of a worker, and looks at each of them. */
static void expand(struct worker *w)
{
	struct qm_engine *e = w->engine;
	const struct qm_model *model = e->model;
	int stuck = e->goals[model->deadlock].length >= e->depth;
	qm_sink *out = &w->out;

	out->count = out->event_count = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		const qm_state *s = state_at(e, w->from + i);
		struct look *look = &w->looks[i];
		size_t before = out->count + out->event_count;
		unsigned waits;
		int ended;

		out->from = i;
		waits = model->expand(s, out);
		ended = out->count + out->event_count == before;
		look->stuck = stuck && (waits || ended) && (circle(model, s, out) || (ended && model->unfinished(s)));
		look->bad = model->observe(s, out, w->values + (size_t)i * model->measures, &look->judged);
	}
	w->transitions = out->count;
}

static void hash_successors(struct worker *w)
{
	for (size_t i = 0; i < w->out.count; i++)
		w->hash[i] = hash_of(&w->out.to[i]);
}

/* Fetches what a look-up of some successors will read. */
static void prefetch(const struct worker *w, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++)
		prefetch_slot(w->engine, w->hash[i]);
	for (size_t i = first; i < last; i++)
		prefetch_state(w->engine, w->hash[i]);
}

/* What a worker does with its states where there are several. */
static void expand_and_hash(struct worker *w)
{
	memset(w->taken, 0, w->engine->model->steps);
	expand(w);
	hash_successors(w);
}

/* --- settling what was found --------------------------------------------------------------------------------------- */

/* Notes that a state violates a property, or reaches the best value. */
static int at_state(struct qm_engine *e, struct goal *goal, uint32_t state)
{
	if (goal->length > e->depth) { /* at most steps that lead a depth further were known */
		goal->length = e->depth;
		goal->states.count = goal->steps.count = 0;
	}
	return goal->length < e->depth || push(e, &goal->states, state);
}

static int at_step(struct qm_engine *e, struct goal *goal, uint32_t state, uint32_t thread)
{
	struct list *steps = &goal->steps;

	if (goal->length == NONE)
		goal->length = e->depth + 1;
	if (goal->length != e->depth + 1)
		return 1;
	if (steps->count && steps->at[steps->count - 2] == state && steps->at[steps->count - 1] == thread)
		return 1;
	return push(e, steps, state) && push(e, steps, thread);
}

static int at_value(struct qm_engine *e, struct best *best, int64_t value, uint32_t state)
{
	if (best->goal.length == NONE || value > best->value) {
		best->value = value;
		best->goal.length = e->depth;
		best->goal.states.count = 0;
	}
	return value < best->value || best->goal.length < e->depth || push(e, &best->goal.states, state);
}

static int settle_looks(struct qm_engine *e, struct worker *w)
{
	const struct qm_model *model = e->model;

	for (size_t i = 0; i < w->out.event_count; i++) {
		const struct qm_event *event = &w->out.events[i];

		e->cut += event->fatal;
		if (event->property == model->bound)
			e->bound++;
		else if (!at_step(e, &e->goals[event->property], w->from + event->from, event->thread))
			return 0;
	}
	for (uint32_t i = 0; i < w->count; i++) {
		const struct look *look = &w->looks[i];
		const int64_t *values = w->values + (size_t)i * model->measures;

		if (look->stuck && !at_state(e, &e->goals[model->deadlock], w->from + i))
			return 0;
		for (uint64_t bad = look->bad; bad; bad &= bad - 1)
			if (!at_state(e, &e->goals[__builtin_ctzll(bad)], w->from + i))
				return 0;
		for (uint64_t judged = look->judged; judged; judged &= judged - 1) {
			unsigned number = __builtin_ctzll(judged);

			if (!at_value(e, &e->bests[number], values[number], w->from + i))
				return 0;
		}
	}
	return 1;
}

/* Adds what a worker found. */
static enum status settle(struct qm_engine *e, struct worker *w)
{
	const qm_state *to = w->out.to;
	size_t count = w->out.count, last;
	enum status status;

	if (w->out.trap) {
		e->trap = w->out.trap;
		return QM_TRAPPED;
	}
	if (w->failed)
		return QM_NO_MEMORY;
	status = make_room(e, count);
	if (status != QM_MORE)
		return status;
	for (size_t first = 0; first < count; first = last) {
		last = first + GROUP < count ? first + GROUP : count;
		prefetch(w, first, last);
		for (size_t i = first; i < last; i++) {
			size_t slot = look_up(e, &to[i], w->hash[i]);

			if (!e->table[slot]) {
				*state_at(e, e->states) = to[i];
				e->table[slot] = tag_of(e, w->hash[i]) | (uint32_t)++e->states;
			}
		}
	}
	e->transitions += w->transitions;
	return settle_looks(e, w) ? QM_MORE : QM_NO_MEMORY;
}

static void settle_taken(struct qm_engine *e, const struct worker *w)
{
	for (uint32_t i = 0; i < e->model->steps; i++)
		e->taken[i] |= w->taken[i];
}

/* --- the search ---------------------------------------------------------------------------------------------------- */

static int violated(const struct qm_engine *e)
{
	for (uint32_t i = 0; i < e->model->properties; i++)
		if (e->goals[i].length != NONE)
			return 1;
	return 0;
}

/* Expands some states of the layer by one worker. */
static enum status expand_alone(struct qm_engine *e, uint32_t count)
{
	struct worker *w = e->workers[0];
	enum status status = QM_MORE;

	for (uint32_t last = e->next + count; e->next < last && status == QM_MORE; e->next += w->count) {
		w->from = e->next;
		w->count = last - e->next < BATCH ? last - e->next : BATCH;
		expand(w);
		hash_successors(w);
		status = settle(e, w);
	}
	settle_taken(e, w);
	return status;
}

/* Lets another thread of the same core do something. */
static inline void breathe(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Lets every worker do a job. A job is short: who waits for one looks out for a while before sleeping. */
static void together(struct qm_engine *e, void (*job)(struct worker *))
{
	pthread_mutex_lock(&e->mutex);
	e->job = job;
	e->busy = e->worker_count - 1;
	__atomic_add_fetch(&e->round, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&e->work);
	pthread_mutex_unlock(&e->mutex);
	job(e->workers[0]);
	for (unsigned i = 0; i < PATIENCE && __atomic_load_n(&e->busy, __ATOMIC_ACQUIRE); i++)
		breathe();
	pthread_mutex_lock(&e->mutex);
	while (__atomic_load_n(&e->busy, __ATOMIC_ACQUIRE))
		pthread_cond_wait(&e->rest, &e->mutex);
	pthread_mutex_unlock(&e->mutex);
}

/* The limit of states is looked at after every LOOK states of a layer and at its end, whoever expands them. */
static enum status limited(const struct qm_engine *e, uint64_t max_states)
{
	int look = e->next == e->end || (e->next - e->begin) % LOOK == 0;

	return look && e->states >= max_states ? QM_FULL : QM_MORE;
}

/* The successor that stands at a place in the lists of all workers. */
static const qm_state *successor_at(const struct qm_engine *e, uint64_t place)
{
	unsigned last = e->worker_count - 1;

	while (place < e->workers[last]->offset)
		last--;
	return &e->workers[last]->out.to[place - e->workers[last]->offset];
}

/*
 * Finds out whether a successor is new. It is then entered under the number that it would have if all were new, which
 * tells where it stands in the lists.
 */
static inline int claim_one(struct qm_engine *e, struct worker *from, size_t i)
{
	const qm_state *s = &from->out.to[i];
	uint32_t mask = number_mask(e), tag = tag_of(e, from->hash[i]), entry, number;
	size_t slot;

	for (slot = slot_of(e, from->hash[i]); (entry = e->table[slot]) != 0; slot = slot_after(e, slot)) {
		if ((entry & ~mask) != tag)
			continue;
		number = (entry & mask) - 1;
		if (same(number < e->states ? state_at(e, number) : successor_at(e, number - e->states), s))
			break;
	}
	from->slot[i] = entry ? NONE : slot;
	if (!entry)
		e->table[slot] = tag | (uint32_t)(e->states + from->offset + i + 1);
	return !entry;
}

/* Finds out which successors are new, for the regions of the table that are a worker's own. */
static void claim(struct worker *w)
{
	const struct qm_engine *e = w->engine;

	for (unsigned v = 0; v < e->worker_count; v++) {
		struct worker *from = e->workers[v];
		size_t own[GROUP], count, i = 0;

		w->found[v] = 0;
		while (i < from->out.count) {
			for (count = 0; count < GROUP && i < from->out.count; i++)
				if (region_of(e, from->hash[i]) % e->worker_count == w->number) {
					prefetch_slot(e, from->hash[i]);
					own[count++] = i;
				}
			for (size_t k = 0; k < count; k++)
				prefetch_state(e, from->hash[own[k]]);
			for (size_t k = 0; k < count; k++)
				w->found[v] += claim_one(w->engine, from, own[k]);
		}
	}
}

/* Puts the new states among a worker's successors into the arena. */
static void place(struct worker *w)
{
	struct qm_engine *e = w->engine;
	uint32_t number = w->first;

	for (size_t i = 0; i < w->out.count; i++)
		if (w->slot[i] != NONE) {
			*state_at(e, number) = w->out.to[i];
			e->table[w->slot[i]] = tag_of(e, w->hash[i]) | ++number;
		}
}

/* Adds what all workers found. */
static enum status settle_together(struct qm_engine *e)
{
	uint64_t total = 0, states = e->states;
	enum status status;

	for (unsigned i = 0; i < e->worker_count; i++) {
		e->workers[i]->offset = total;
		total += e->workers[i]->out.count;
	}
	status = make_room(e, total);
	if (status != QM_MORE)
		return status;
	together(e, claim);
	for (unsigned v = 0; v < e->worker_count; v++) {
		e->workers[v]->first = states;
		for (unsigned i = 0; i < e->worker_count; i++)
			states += e->workers[i]->found[v];
	}
	together(e, place);
	e->states = states;
	for (unsigned i = 0; i < e->worker_count; i++) {
		struct worker *w = e->workers[i];

		e->next += w->count;
		e->transitions += w->transitions;
		settle_taken(e, w);
		if (!settle_looks(e, w))
			return QM_NO_MEMORY;
	}
	return QM_MORE;
}

/* Expands states of the layer by all workers: each takes as many that follow one another, a part of LOOK. */
static enum status expand_together(struct qm_engine *e, uint64_t max_states)
{
	uint32_t part = LOOK, from = e->next;
	enum status status = QM_MORE;
	uint64_t total = 0;
	int clean = 1;

	while (part > BATCH && (uint64_t)(part / 2) * e->worker_count >= e->end - from)
		part /= 2;
	for (unsigned i = 0; i < e->worker_count; i++, from += part) {
		e->workers[i]->from = from < e->end ? from : e->end;
		e->workers[i]->count = from >= e->end ? 0 : e->end - from < part ? e->end - from : part;
	}
	together(e, expand_and_hash);
	for (unsigned i = 0; i < e->worker_count; i++) {
		total += e->workers[i]->out.count;
		clean &= !e->workers[i]->out.trap && !e->workers[i]->failed;
	}
	if (clean && e->states + total < max_states)
		return settle_together(e);
	/* The search ends here, maybe after a part of these states. */
	for (unsigned i = 0; i < e->worker_count && e->workers[i]->count && status == QM_MORE; i++) {
		e->next += e->workers[i]->count;
		status = settle(e, e->workers[i]);
		settle_taken(e, e->workers[i]);
		if (status == QM_MORE)
			status = limited(e, max_states);
	}
	return status;
}

/* Searches on, for about so many states. Where a search ends does not depend on slices. */
API int qm_search(struct qm_engine *e, uint64_t max_states, int stop_first, uint64_t slice)
{
	for (uint64_t done = 0; done < slice;) {
		uint32_t from = e->next;
		enum status status;

		if (e->next == e->end) {
			if (stop_first && violated(e))
				return QM_STOPPED;
			if (e->states == e->end)
				return QM_DONE;
			if (!push(e, &e->layers, e->end))
				return QM_NO_MEMORY;
			e->begin = e->end;
			e->end = e->states;
			e->depth++;
		}
		if (e->worker_count > 1 && e->end - e->next >= ALONE) {
			status = expand_together(e, max_states);
		} else {
			status = expand_alone(e, e->end - e->next < LOOK ? e->end - e->next : LOOK);
			if (status == QM_MORE)
				status = limited(e, max_states);
		}
		if (status != QM_MORE)
			return status;
		done += e->next - from;
	}
	return QM_MORE;
}

API void qm_look(const struct qm_engine *e, struct qm_figures *figures)
{
	figures->states = e->states;
	figures->transitions = e->transitions;
	figures->cut = e->cut;
	figures->bound = e->bound;
	figures->frontier = e->states - e->next;
	figures->memory = e->used;
	figures->peak = e->peak;
	figures->depth = e->depth + (e->states > e->end);
	figures->trap = e->trap;
}

/* Tells of each step whether it was ever taken. */
API void qm_taken(const struct qm_engine *e, uint8_t *taken)
{
	memcpy(taken, e->taken, e->model->steps);
}

/* Tells whether a property is violated. */
API int qm_violated(const struct qm_engine *e, uint32_t property)
{
	return e->goals[property].length != NONE;
}

/* Tells whether a measure has a value, and which. */
API int qm_best(const struct qm_engine *e, uint32_t measure, int64_t *value)
{
	*value = e->bests[measure].value;
	return e->bests[measure].goal.length != NONE;
}

/* --- shortest ways ------------------------------------------------------------------------------------------------- */

/*
 * Of the shortest ways to a goal one with the fewest context switches is wanted. A switch is where two successive steps
 * are of different threads; a commit of a store buffer is none, and leaves who moved last as it was. What is left from
 * a state on depends on who moved last, by 1 at most: the threads for which it is the least, `cost`, are kept, and for
 * any other it is cost + 1. Where nobody moved yet it is `cost`.
 */
static uint32_t cost_after(const struct record *record, int last)
{
	return record->cost + (last != NOBODY && !(record->last >> last & 1));
}

static uint32_t first_of(const struct qm_engine *e, uint32_t depth)
{
	return depth < e->layers.count ? e->layers.at[depth] : depth == e->layers.count ? e->end : e->states;
}

static const struct record *record_of(const struct sweep *sweep, uint32_t depth, uint32_t state)
{
	size_t low = sweep->first[depth], high = depth ? sweep->first[depth - 1] : sweep->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sweep->records[middle].state < state)
			low = middle + 1;
		else
			high = middle;
	}
	return low < (depth ? sweep->first[depth - 1] : sweep->count) && sweep->records[low].state == state
		? &sweep->records[low]
		: NULL;
}

static int add_sweep(struct qm_engine *e, const struct goal *goal)
{
	struct sweep *sweep = &e->sweeps[e->sweep_count];

	if (goal->length == NONE)
		return 1;
	sweep->goal = goal;
	e->sweep_count++;
	sweep->first = fresh(e, goal->length * sizeof(*sweep->first));
	sweep->here = fresh(e, e->layer_room * sizeof(*sweep->here));
	sweep->beyond = fresh(e, e->layer_room * sizeof(*sweep->beyond));
	return sweep->first && sweep->here && sweep->beyond;
}

/* Gets ready for the ways to every violated property and every best value, in their order. */
API int qm_trace(struct qm_engine *e)
{
	const struct qm_model *model = e->model;
	uint32_t length = 0;

	for (uint32_t i = 0; i < model->properties; i++)
		if (e->goals[i].length != NONE && e->goals[i].length > length)
			length = e->goals[i].length;
	for (uint32_t i = 0; i < model->measures; i++)
		if (e->bests[i].goal.length != NONE && e->bests[i].goal.length > length)
			length = e->bests[i].goal.length;
	for (uint32_t depth = 0; depth <= length; depth++)
		if (first_of(e, depth + 1) - first_of(e, depth) > e->layer_room)
			e->layer_room = first_of(e, depth + 1) - first_of(e, depth);
	e->sweeps = fresh(e, (model->properties + model->measures) * sizeof(*e->sweeps));
	if (!e->sweeps)
		return QM_NO_MEMORY;
	for (uint32_t i = 0; i < model->properties; i++)
		if (!add_sweep(e, &e->goals[i]))
			return QM_NO_MEMORY;
	for (uint32_t i = 0; i < model->measures; i++)
		if (!add_sweep(e, &e->bests[i].goal))
			return QM_NO_MEMORY;
	e->back_depth = length;
	return QM_MORE;
}

/* How many ways there are. */
API uint32_t qm_ways(const struct qm_engine *e)
{
	return e->sweep_count;
}

/* Begins the states of a depth. */
static void turn_page(struct qm_engine *e, uint32_t depth)
{
	uint32_t first = first_of(e, depth), end = first_of(e, depth + 1), further = first_of(e, depth + 2);

	for (size_t i = 0; i < e->sweep_count; i++) {
		struct sweep *sweep = &e->sweeps[i];
		uint32_t *map = sweep->beyond;

		if (depth >= sweep->goal->length)
			continue;
		sweep->beyond = sweep->here;
		sweep->here = map;
		memset(map, 0, (end - first) * sizeof(*map));
		sweep->first[depth] = sweep->count;
		if (depth + 1 == sweep->goal->length) {
			memset(sweep->beyond, 0, (further - end) * sizeof(*map));
			for (size_t k = 0; k < sweep->goal->states.count; k++)
				sweep->beyond[sweep->goal->states.at[k] - end] = 1;
		}
	}
}

/* Takes one more way from a state into account. */
static inline void merge(struct record *record, uint32_t cost, uint64_t last)
{
	if (cost < record->cost) {
		record->cost = cost;
		record->last = last;
	} else if (cost == record->cost) {
		record->last |= last;
	}
}

/* Tells whether a step violates the property of a goal: they stand in order. */
static int has_step(const struct goal *goal, uint32_t state, uint32_t thread)
{
	size_t low = 0, high = goal->steps.count / 2;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const uint32_t *at = &goal->steps.at[2 * middle];

		if (at[0] < state || (at[0] == state && at[1] < thread))
			low = middle + 1;
		else
			high = middle;
	}
	return 2 * low < goal->steps.count && goal->steps.at[2 * low] == state && goal->steps.at[2 * low + 1] == thread;
}

/* Takes all steps of some states of the depth that the sweeps are at, and notes what is on a shortest way. */
static int look_back(struct qm_engine *e, uint32_t from, uint32_t count)
{
	const struct qm_model *model = e->model;
	uint32_t depth = e->back_depth, first = first_of(e, depth);
	uint32_t beyond = first_of(e, depth + 1), further = first_of(e, depth + 2);
	struct worker *w = e->workers[0];
	qm_sink *out = &w->out;

	out->count = 0;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t t = 0; t < model->threads; t++) {
			out->event_count = 0;
			model->step(t, state_at(e, from + i), out);
			e->ends[i * model->threads + t] = out->count;
		}
	if (w->failed)
		return 0;
	hash_successors(w);
	prefetch(w, 0, out->count);
	for (size_t i = 0; i < out->count; i++) {
		uint32_t number = find(e, &out->to[i], w->hash[i]);

		w->hash[i] = number != NONE && number >= beyond && number < further ? number - beyond : NONE;
	}
	for (size_t k = 0; k < e->sweep_count; k++) {
		struct sweep *sweep = &e->sweeps[k];
		int last = depth + 1 == sweep->goal->length;
		size_t at = 0;

		if (depth >= sweep->goal->length)
			continue;
		for (uint32_t i = 0; i < count; i++) {
			struct record record = { .state = from + i, .cost = NONE };

			for (uint32_t t = 0; t < model->threads; t++) {
				int buffer = model->buffers >> t & 1;
				uint64_t mover = buffer ? EVERYBODY : UINT64_C(1) << t;

				if (last && has_step(sweep->goal, from + i, t))
					merge(&record, 0, mover);
				for (; at < e->ends[i * model->threads + t]; at++) {
					uint32_t number = w->hash[at] == NONE ? 0 : sweep->beyond[w->hash[at]];
					const struct record *next = &sweep->records[number - 1];

					if (!number)
						continue;
					if (last)
						merge(&record, 0, mover);
					else if (buffer)
						merge(&record, next->cost, next->last);
					else
						merge(&record, cost_after(next, t), mover);
				}
			}
			if (record.cost == NONE)
				continue;
			if (!widen(e, &sweep->records, sweep->count, &sweep->room, sizeof(record)))
				return 0;
			sweep->records[sweep->count++] = record;
			sweep->here[from + i - first] = sweep->count;
		}
	}
	return 1;
}

/* Goes back through the layers, for about so many states. */
API int qm_trace_back(struct qm_engine *e, uint64_t slice)
{
	uint64_t done = 0;

	for (;;) {
		uint32_t count;

		if (e->back_next == e->back_end) {
			if (!e->back_depth)
				return QM_DONE;
			e->back_depth--;
			turn_page(e, e->back_depth);
			e->back_next = first_of(e, e->back_depth);
			e->back_end = first_of(e, e->back_depth + 1);
		}
		if (done >= slice)
			return QM_MORE;
		count = e->back_end - e->back_next < BATCH ? e->back_end - e->back_next : BATCH;
		if (!look_back(e, e->back_next, count))
			return QM_NO_MEMORY;
		e->back_next += count;
		done += count;
	}
}

/* Takes a step of a thread; what it leads to is then in the sink of the first worker. */
static const qm_sink *take_step(struct qm_engine *e, uint32_t state, uint32_t thread)
{
	qm_sink *out = &e->workers[0]->out;

	out->count = out->event_count = 0;
	e->model->step(thread, state_at(e, state), out);
	return out;
}

/* The switches that are left after a step to a state at a depth, or NONE where that is on no shortest way. */
static uint32_t cost_of(const struct sweep *sweep, uint32_t depth, uint32_t state, int last)
{
	const struct list *goals = &sweep->goal->states;
	const struct record *record;
	size_t low = 0, high = goals->count;

	if (state == NONE)
		return NONE;
	if (depth < sweep->goal->length) {
		record = record_of(sweep, depth, state);
		return record ? cost_after(record, last) : NONE;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (goals->at[middle] < state)
			low = middle + 1;
		else
			high = middle;
	}
	return low < goals->count && goals->at[low] == state ? 0 : NONE;
}

/* The switches of the best shortest way that begins with a step of a thread, or NONE where none does. */
static uint32_t cost_with(struct qm_engine *e, const struct sweep *sweep, uint32_t depth, uint32_t state, uint32_t thread,
			  int last)
{
	int buffer = e->model->buffers >> thread & 1;
	uint32_t switched = !buffer && last != NOBODY && last != (int)thread, least = NONE, cost;
	const qm_sink *out = take_step(e, state, thread);

	if (depth + 1 == sweep->goal->length && has_step(sweep->goal, state, thread))
		least = 0;
	for (size_t i = 0; i < out->count; i++) {
		uint32_t to = find(e, &out->to[i], hash_of(&out->to[i]));

		cost = cost_of(sweep, depth + 1, to, buffer ? last : (int)thread);
		if (cost < least)
			least = cost;
	}
	return least == NONE ? NONE : least + switched;
}

/* Writes a way down: the states that lead to one place in the trail, and who moved at each. Returns how many. */
static int64_t write_way(const struct qm_engine *e, uint32_t place, uint32_t length, qm_state *states, int32_t *threads)
{
	for (uint32_t depth = length; depth-- > 0; place = e->origin.at[place]) {
		states[depth] = *state_at(e, e->trail.at[place]);
		threads[depth] = e->movers.at[depth];
	}
	return length;
}

/*
 * Writes the way to a goal down: the state before each step, and the thread that takes it; behind the last step the
 * state that is reached, and NOBODY, unless the goal is a step that violates. There is room for 1 + the goal's length.
 * Returns how many states it is, 0 where memory is used up.
 *
 * Of the ways with the fewest switches it is the one with the smallest threads, and then with the first alternatives:
 * `trail` has the states that the same threads can lead to, those of one depth from `begin` to `end`.
 */
API int64_t qm_walk(struct qm_engine *e, uint32_t number, qm_state *states, int32_t *threads)
{
	struct sweep *sweep = &e->sweeps[number];
	const struct goal *goal = sweep->goal;
	size_t begin = 0, end = 1;
	int last = NOBODY;

	e->trail.count = e->origin.count = e->movers.count = 0;
	if (!push(e, &e->trail, 0) || !push(e, &e->origin, NONE))
		return 0;
	memset(sweep->here, 0, e->layer_room * sizeof(*sweep->here));
	for (uint32_t depth = 0; depth < goal->length; depth++) {
		uint32_t cheapest = NONE, mover = THREADS, cost, rest, reached = NONE, from = NONE;

		for (size_t i = begin; i < end; i++) {
			cost = cost_of(sweep, depth, e->trail.at[i], last);
			if (cost < cheapest)
				cheapest = cost;
		}
		for (size_t i = begin; i < end; i++)
			for (uint32_t t = 0; t < e->model->threads && t < mover; t++)
				if (cost_with(e, sweep, depth, e->trail.at[i], t, last) == cheapest)
					mover = t;
		if (mover == THREADS || e->workers[0]->failed)
			return 0;
		rest = cheapest;
		if (!(e->model->buffers >> mover & 1)) {
			rest -= last != NOBODY && last != (int)mover;
			last = mover;
		}
		if (!push(e, &e->movers, mover))
			return 0;
		for (size_t i = begin; i < end; i++) {
			const qm_sink *out = take_step(e, e->trail.at[i], mover);

			if (depth + 1 == goal->length && has_step(goal, e->trail.at[i], mover))
				return write_way(e, i, goal->length, states, threads);
			for (size_t k = 0; k < out->count; k++) {
				uint32_t to = find(e, &out->to[k], hash_of(&out->to[k]));
				uint32_t *seen;

				if (cost_of(sweep, depth + 1, to, last) != rest)
					continue;
				seen = &sweep->here[to - first_of(e, depth + 1)];
				if (depth + 1 == goal->length) {
					if (reached == NONE) {
						reached = to;
						from = i;
					}
				} else if (!*seen) {
					*seen = 1;
					if (!push(e, &e->trail, to) || !push(e, &e->origin, i))
						return 0;
				}
			}
		}
		if (reached != NONE) {
			write_way(e, from, goal->length, states, threads);
			states[goal->length] = *state_at(e, reached);
			threads[goal->length] = NOBODY;
			return goal->length + 1;
		}
		for (size_t i = end; i < e->trail.count; i++)
			sweep->here[e->trail.at[i] - first_of(e, depth + 1)] = 0;
		begin = end;
		end = e->trail.count;
	}
	states[0] = *state_at(e, 0);
	threads[0] = NOBODY;
	return 1;
}

/* --- beginning and end --------------------------------------------------------------------------------------------- */

static void *work(void *argument)
{
	struct worker *w = argument;
	struct qm_engine *e = w->engine;
	uint64_t round = 0;
	int leaving;

	for (;;) {
		for (unsigned i = 0; i < PATIENCE && __atomic_load_n(&e->round, __ATOMIC_ACQUIRE) == round; i++)
			breathe();
		pthread_mutex_lock(&e->mutex);
		while (!e->leaving && e->round == round)
			pthread_cond_wait(&e->work, &e->mutex);
		round = e->round;
		leaving = e->leaving;
		pthread_mutex_unlock(&e->mutex);
		if (leaving)
			return NULL;
		e->job(w);
		if (!__atomic_sub_fetch(&e->busy, 1, __ATOMIC_ACQ_REL)) {
			pthread_mutex_lock(&e->mutex);
			pthread_cond_signal(&e->rest);
			pthread_mutex_unlock(&e->mutex);
		}
	}
}

static void dismiss(struct worker *w)
{
	free(w->values);
	free(w->taken);
	free(w->hash);
	free(w->slot);
	free(w->out.to);
	free(w->out.events);
	free(w);
}

static struct worker *hire(struct qm_engine *e)
{
	struct worker *w = fresh(e, sizeof(*w));

	if (!w)
		return NULL;
	w->engine = e;
	w->number = e->worker_count;
	w->out.more = more_successors;
	w->out.event = add_event;
	w->values = fresh(e, LOOK * e->model->measures * sizeof(*w->values));
	more_successors(&w->out);
	w->taken = w->out.taken = fresh(e, e->model->steps);
	if (w->values && w->taken && !w->failed)
		return w;
	dismiss(w);
	return NULL;
}

/* Takes on as many workers as there can be. Signals are for the thread that began. */
static void hire_more(struct qm_engine *e, unsigned count)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (e->worker_count < count) {
		struct worker *w = hire(e);

		if (!w)
			break;
		e->workers[e->worker_count] = w;
		if (pthread_create(&w->thread, NULL, work, w)) {
			dismiss(w);
			break;
		}
		e->worker_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

API void qm_close(struct qm_engine *e)
{
	if (e->running) {
		pthread_mutex_lock(&e->mutex);
		e->leaving = 1;
		pthread_cond_broadcast(&e->work);
		pthread_mutex_unlock(&e->mutex);
	}
	for (unsigned i = 0; i < e->worker_count; i++) {
		struct worker *w = e->workers[i];

		if (i)
			pthread_join(w->thread, NULL);
		dismiss(w);
	}
	free(e->workers);
	if (e->running) {
		pthread_cond_destroy(&e->rest);
		pthread_cond_destroy(&e->work);
		pthread_mutex_destroy(&e->mutex);
	}
	for (size_t i = 0; i < e->sweep_count; i++) {
		free(e->sweeps[i].records);
		free(e->sweeps[i].first);
		free(e->sweeps[i].here);
		free(e->sweeps[i].beyond);
	}
	free(e->sweeps);
	for (uint32_t i = 0; e->goals && i < e->model->properties; i++) {
		free(e->goals[i].states.at);
		free(e->goals[i].steps.at);
	}
	for (uint32_t i = 0; e->bests && i < e->model->measures; i++)
		free(e->bests[i].goal.states.at);
	free(e->taken);
	free(e->goals);
	free(e->bests);
	free(e->trail.at);
	free(e->origin.at);
	free(e->movers.at);
	free(e->layers.at);
	for (size_t i = 0; i < e->block_count; i++)
		free(e->blocks[i]);
	free(e->blocks);
	free(e->table);
	free(e);
}

/* Begins a search at a state, with so many bytes of memory and so many workers. Returns NULL where that is too little. */
API struct qm_engine *qm_open(const struct qm_model *model, const qm_state *initial, uint64_t budget, unsigned workers)
{
	struct qm_engine *e = calloc(1, sizeof(*e));
	uint64_t hash = hash_of(initial);

	if (!e)
		return NULL;
	workers = workers < WORKERS ? workers : WORKERS;
	e->model = model;
	e->budget = budget;
	e->table_bits = TABLE_BITS;
	e->table = fresh(e, sizeof(*e->table) << TABLE_BITS);
	e->taken = fresh(e, model->steps);
	e->goals = fresh(e, model->properties * sizeof(*e->goals));
	e->bests = fresh(e, model->measures * sizeof(*e->bests));
	e->workers = fresh(e, workers * sizeof(struct worker *));
	if (!e->table || !e->taken || !e->goals || !e->bests || !e->workers || !push(e, &e->layers, 0))
		goto failed;
	if (make_room(e, 1) != QM_MORE)
		goto failed;
	e->workers[0] = hire(e);
	if (!e->workers[0])
		goto failed;
	e->worker_count = 1;
	for (uint32_t i = 0; i < model->properties; i++)
		e->goals[i].length = NONE;
	for (uint32_t i = 0; i < model->measures; i++)
		e->bests[i].goal.length = NONE;
	*state_at(e, 0) = *initial;
	e->table[slot_of(e, hash)] = tag_of(e, hash) | 1;
	e->states = e->end = 1;
	if (workers > 1) {
		pthread_mutex_init(&e->mutex, NULL);
		pthread_cond_init(&e->work, NULL);
		pthread_cond_init(&e->rest, NULL);
		e->running = 1;
		hire_more(e, workers);
	}
	return e;
failed:
	qm_close(e);
	return NULL;
}

/* Lets a search use more or less memory from now on. */
API void qm_allow(struct qm_engine *e, uint64_t budget)
{
	e->budget = budget;
}
