"""Sizes by which it is decided how a step is done. They are read here at every use, so that a test can set them.

None of them changes a result: what is larger than a limit is done in another way, which gives the same rows. Those on
bytes that are read (.._BYTES_READ, READ_BYTES, LOCAL_TABLE_BYTES) are for a laptop: ``pace`` says what they are here.
"""

from __future__ import annotations

UNCOMPILED_ROWS = 30_000
"""Rows that are read for a query which takes longer to compile than to run."""

LOCAL_ROWS = 100_000
LOCAL_BYTES = 256 * 1024 * 1024
"""Rows that are few, and bytes that are held of them: they are collected, and sent to every executor where Spark needs
them."""
ASKED_ROWS = 100_000
"""Rows for which single values are asked of Spark; of more, Spark gets all that follows."""
DECIMAL_ROWS = 10_000
"""Decimals that are computed one by one."""
SINGLE_VALUES = 50_000
"""Other values that are computed one by one, in Python; equal ones count once."""
COMPARED_ELEMENTS = 20_000_000
"""Rows times the longest of their arrays, for arrays that are compared."""
JOINED_PAIRS = 4_000_000
"""Pairs of rows that a join on the driver looks at."""

CHANGE_ROWS = 2_000_000
CHANGE_BYTES = 256 * 1024 * 1024
"""Of a change that is read on the driver: rows, and bytes that are held of them."""
CHANGE_BYTES_READ = 2 * 1024**3
"""Bytes, uncompressed, of the columns that are read for it."""
SMALL_CHANGE_BYTES = 256 * 1024
"""Of files of a change that one task of Spark's reads fast."""

READ_ROWS = 1_000_000
READ_BYTES = 64 * 1024 * 1024
"""Of a table that is brought to the driver whole."""

TAIL_LEAST_ROWS = 5_000
"""Rows of a window's table of which touched partitions are made anew as fast as their last rows are sought."""

LOOKUP_LEAST_ROWS = 50_000
"""Rows of a table that are all read as fast as some of them are looked up."""
LOOKUP_MOST_ROWS = 50_000_000
"""Rows that one machine should not be asked to look through."""
LOOKUP_KEYS = 2_000_000
LOOKUP_FOUND = 2_000_000
LOOKUP_BYTES = 512 * 1024 * 1024
"""Keys that are looked up, and rows and bytes that are found."""
LOOKUP_BYTES_READ = 2 * 1024**3
"""Bytes of files that are looked through for them, besides what is in memory."""
LOOKUP_COMBINATIONS = 50_000_000
"""Combinations of the keys' values that are told by a bit each."""
LOOKUP_FEW_VALUES = 1_000
"""Values that Arrow finds by a hash table which it makes anew for every batch."""
KNOWN_KEYS = 1_000
"""Changed rows whose keys are taken as they are; of more, Spark finds those that really changed."""
CONDITION_VALUES = 500
CONDITION_COMBINATIONS = 20
"""Values, and keys of several columns, that are written into a condition."""

SMALL_TABLE_ROWS = 50_000
"""Rows of a table that is written anew rather than searched for what to replace."""
LOCAL_TABLE_ROWS = 4_000_000
LOCAL_TABLE_BYTES = 64 * 1024 * 1024
"""Rows that are written again on the driver, and bytes of the files that are read for it."""
LOCATED_ROWS = 1_000_000
"""Rows to be removed whose places are collected; of more, only the files are."""
NEARBY_ROWS = 10_000
"""Stored rows near a change that are all merged with it, so that its groups need not be computed first."""
MANY_TOUCHED = 3
"""If one in so many stored groups is touched, all of them are read and merged, which costs less than finding them."""
SCANNED_GROUP_ROWS = 1_000_000
"""Rows of the child that are aggregated as fast as their groups are merged, if all of the child is scanned for them."""
LOOKED_UP_GROUP_ROWS = 50_000
"""The same if they are looked up."""
COMPACTED_ROWS = 1_000_000
"""Rows of a file that is merged with others."""

FEW_PLACES = 2_000
"""Hidden rows that are told by a condition; more are looked up, so that Spark need not parse and compile them."""
MANY_PLACES = 500_000
"""Hidden rows that Delta's own reader leaves out faster than we do, though it takes longer to begin."""
VECTOR_WORDS = 4_000_000
"""The longest vectors that are sent to every executor, in words of 64 rows: some 250 million rows of files."""

WEIGHED_ROWS = 50_000
"""A node whose inputs have fewer rows than this is maintained, whatever changed."""
WEIGHED_CHANGE_ROWS = 500
"""Fewer changed rows than this are never worth a recomputation."""

PATCHED_ELEMENTS = 500
"""Elements of a JSON array that is patched; one of fewer is put together again as fast."""

FRAME_STEPS = 20_000_000
"""Additions of doubles in frames of windows, each of which is added up from its first row on."""
