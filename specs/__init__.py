"""The models that come with qmodel, one file each."""
