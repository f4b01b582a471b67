"""Constants of the cost model: what no description of a chip says.

Rates, sizes and latencies are a chip's, see :class:`polyblocks.target.TargetDescription`. Each of
these has its unit, and the measurement that it is from where there is one; the others count the
instructions of the code that is written. Sizes that a search tries stand with the search.
"""

# Resources, caches and the main memory: ratios, and bytes

#: The part of the time of other resources that does not overlap with the bottleneck's.
NOT_HIDDEN = 0.2
#: Of the time of a reduction in one part, the most that it may take in several: predictions are no
#: better than that, and a kernel more is more to launch.
WORTH_PARTS = 0.8
#: Share of a memory level that one nest's data may fill before other data drives it out.
CACHE_SHARE = 2
#: Bytes that a program touches, over those of the last cache, up to which it finds most of them
#: there when it runs again. On a Zen 4 with 32 MiB copies are faster through the caches until then
#: (0.39 ms, and 0.61 past them, 16 MiB into 16; 0.55 and 0.76, 20 into 20), beyond 1.5 past them;
#: a transposition (0.69, and 0.45 past them) and sums along columns (1.7 and 0.44) are not.
BEYOND_CACHE = 1.25
#: Part of the last cache that an output fills at least that passes it.
LARGE_OUTPUT = 1 / 4
#: Bytes of the largest private cache where the description has none.
PRIVATE_BYTES = 1 << 18
#: Time of a line that another core has just written, in times of one of a core's share of the main
#: memory: 256 KiB took 26 µs on two cores of a Zen 4, at best 5.
HANDED_OVER = 2.0

#: Time of an update at any place beyond a core's own caches, in times of a line's bytes from the
#: cache behind these: a line comes and another one goes back, a few at a time. 4M floats into 16
#: MiB by one core of a Zen 4: 3.1 ns each; 1.9 by two, each into 8 MiB of these.
ANY_PLACE = 4.0

# Loops one after the other: slots (a slot is a multiply-add of a whole register), and a ratio

#: Slots that are bridged by what memory fetches ahead and by what waits to be written, some KiB: a
#: softmax of rows of 4 KiB reads, computes and writes at the same time, a tile of 256 KiB does not.
OVERLAP_SLOTS = 2048.0
#: The part of the time of memory levels that does not overlap with the slowest one's: a line comes
#: through all of them. Of the pipelines of the benchmarks, whose tiles are in the second cache.
LEVELS_IN_TURN = 0.3

# Loops: instructions, and iterations

#: Scalar instructions of an iteration of a loop that counts.
LOOP_COUNTER = 2.0
#: Iterations of loops in each other that are written one after the other, at most.
UNROLLED = 16

#: Scalar instructions of an update that is listed before it is stored, with what waits for the
#: list. 131,072 floats by two cores of a Zen 4 take as long so as by one that stores them at once,
#: 0.1 ms.
LISTED_UPDATE = 16.0

# Checks: instructions

#: Instructions of a vector's check: all lanes of its condition, and a branch.
VECTOR_CHECK = 3

# Tiles of a core: vector instructions, bytes, and ratios

#: Vector instructions that starting an innermost loop costs: its bounds, its tail.
ROW_START = 10.0
#: The part of a cache that a tile may take; the rest is for what passes through.
CACHE_PART = 0.75
#: Bytes that could have been moved while the memory finds the next run of addresses. Column sums of
#: 64 MiB by two cores of Zen 4: 58 GB/s in runs of 8 KiB, 35 in runs of 1 KiB.
RUN_START = 512
#: Bytes of a run from which on its start does not count: two pages, since hardware fetches ahead
#: within a page. Two blurs of 3 x 2048 x 2048 after each other on Zen 4: 4.8 ms in runs of 4 KiB,
#: 3.2 in whole rows of 8.
LONG_RUN = 8192
#: Time of bytes in rows that are found at run time only, over that of bytes in order: nothing
#: fetches ahead beyond the end of a row, and the next one is in another page of the memory. Rows of
#: 16 KiB in any order, read by two cores of Zen 4: 27 GB/s, 38 in order.
ANY_ORDER = 1.5
#: Bytes in order that could have been moved while such a row is found: its first lines are fetched
#: before anything fetches ahead, and a core waits for a few lines at a time. Rows of 64, 128, 256,
#: 512, 1024 and 4096 bytes: 8.7, 12.8, 17.2, 17.9, 19.8 and 23.7 GB/s, where 38 / (1.5 + 192 / row)
#: is 8.4, 12.7, 16.9, 20.3, 22.5 and 24.6.
ANY_ROW_START = 192
#: Iterations over those that are needed, from which on tiles may take a share of the last cache.
RECOMPUTED_ITERATIONS = 1.15
#: The part of a core's share of the last cache that they may take.
SHARED_PART = 0.25
#: Bytes that they may take: they are on the stack of a thread, which commonly has 4 MiB or more.
MOST_LOCAL = 2 << 20
#: Predicted times of a tile from another start over that of the best one, for which it is taken.
CLEARLY = 0.97
#: The same of a larger tile, in the search along one dimension. 32 Fourier transforms of 4096
#: numbers on a Sapphire Rapids: tiles of 8 rows, for which 3 % less is predicted than for tiles of
#: one row, take a fifth longer. These save traffic in caches; traffic with memory counts in full in
#: the end. Waves of 25 points in 256 x 256 x 256 take 75 ms on a Zen 4 in tiles of 16 planes, 107
#: in nests of their own; 5 % and 3 % less are predicted for these than for tiles of 4 planes.
CLEARLY_LARGER = 0.93

# Tiles of a block of threads: ratios, and registers

#: Relative time added by recomputed work, beyond its operations.
RECOMPUTED = 0.1
#: Handicap of a tile for each doubling of the rows that threads do one after the other.
ROWS_IN_TURN = 0.05
#: How much of a multiprocessor's registers a tile may fill with what it reads again.
REGISTER_SHARE = 0.25
#: Registers of a thread besides elements and values: addresses, counters, conditions.
RESERVED_REGISTERS = 24

# Memory of GPUs: a ratio

#: Bytes that accesses ask for, for each one that the main memory moves: caches have the others.
ACCESSED_PER_MOVED = 2.5

# Copies of operands and results: multiply-adds of one vector

#: A vector that is copied in order.
COPIED_VECTOR = 2.0
#: A vector that is transposed in registers, beside its copy.
TRANSPOSED_VECTOR = 6.0
#: Beginning one of the loops that count what is copied.
COPY_RUN = 6.0
#: A number that is put into a word of a unit's with others.
ASSEMBLED_NUMBER = 6.0
#: A copied element that has none of its neighbours beside it.
SCATTERED_ELEMENT = 2.0
#: One that is copied alone, while its neighbours in memory are copied before and after it: a load
#: and a store. On Zen 4, a product with 100,000 columns of 8 numbers, which are packed, takes 0.36
#: ms, and 0.3 where they are in order.
LONE_ELEMENT = 1.0

# A core whose description does not say

#: Multiply-adds in flight that keep it busy.
MULTIPLY_ADDS_IN_FLIGHT = 8
#: Loads that it starts in the time of one.
LOADS_PER_MULTIPLY_ADD = 1.0

# Register tiles: multiply-adds of one vector

#: Tiebreak for loads hidden by multiply-adds, in multiply-adds.
LOAD_TIEBREAK = 0.01
#: K loop overhead per step, in multiply-adds: its branch and its counter.
K_LOOP_OVERHEAD = 0.2
#: Delinearizing the index of a row's results, if a tile's rows are not in one outer loop.
DELINEARIZATION = 12.0
#: Adding a vector of a chunk of K to the total: load, add, store.
CHUNK_END = 3.0
#: The mispredicted exit of an inner loop over K.
LOOP_EXIT = 24.0
#: Trip counts whose exit a core predicts.
PREDICTABLE_TRIPS = 16
#: Such an exit.
PREDICTED_EXIT = 4.0

# Sets of a first cache

#: Ways of a first cache whose description has none.
CACHE_WAYS = 8

# Kernels: ratios

#: Latency added by unused bytes of transactions, relative to the used ones.
UNUSED_BYTES = 0.25
#: Bytes of the main memory's caches that a byte of shared memory stands for.
CACHE_BYTES_PER_SHARED_BYTE = 0.25
#: The same of a byte that a multiprocessor keeps near, as long as others do not push it out.
STREAMED_SHARE = 0.5

# Products by lanes: a ratio

#: Of the latency of the main memory, that of a cache with data shared with other blocks.
SHARED_TILE_SHARE = 0.5

# Reductions that threads share: operations

#: Operations that joining the parts of a reduction takes, about.
JOIN_OPERATIONS = 40
