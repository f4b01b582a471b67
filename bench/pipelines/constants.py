"""Numbers that the pipelines share, so that every language computes the same."""

#: Binomial taps of 3 and 5: sums of independent coin flips, which approach a Gaussian.
TAPS3 = (0.25, 0.5, 0.25)
TAPS5 = (0.0625, 0.25, 0.375, 0.25, 0.0625)

#: Four taps around the middle between two pixels, for halving a resolution without a shift.
TAPS4 = (0.125, 0.375, 0.375, 0.125)

#: Unsharp mask: how much of the detail is added, and the detail that counts as noise.
UNSHARP_WEIGHT = 3.0
UNSHARP_THRESHOLD = 0.01

#: Sobel's filter across; its transpose is the one down.
SOBEL = ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0))
#: What a Sobel filter is divided by in the structure tensor, and Harris' constant.
SOBEL_SCALE = 12.0
HARRIS = 0.04

#: Canny-like edges: thresholds of certain and of possible edges; tangents of 22.5 and 67.5 degrees,
#: between which a direction counts as diagonal.
EDGE_HIGH, EDGE_LOW = 0.5, 0.2
TAN_22, TAN_67 = 0.41421356, 2.41421356
#: How an edge is written that is possible, and not beside a certain one.
WEAK = 0.5

#: Bilateral filter: reach of the window, deviations in pixels and in brightness.
BILATERAL_REACH = 4
BILATERAL_SPACE, BILATERAL_RANGE = 2.5, 0.1

#: Non-local means: reach of the search window and of the patches, and the distance between patches
#: (mean square) at which a weight has fallen to 1/e.
SEARCH_REACH, PATCH_REACH = 3, 1
PATCH_DISTANCE = 0.01

#: Camera: colours of the sensor to RGB, a row for each colour of the result; the black level that
#: is taken off; how much of the detail is added in the end; entries of the curve's table.
COLOR_MATRIX = ((1.70, -0.55, -0.15), (-0.25, 1.55, -0.30), (0.02, -0.52, 1.50))
BLACK = 0.02
SHARPEN = 0.6
CURVE = 256

#: Bilateral grid: pixels of a cell along each side, and cells of the brightness from 0 to 1.
CELL, SHADES = 8, 8

#: Pyramids: levels of multi-scale interpolation, of the local Laplacian and of blending.
INTERPOLATION_LEVELS, LAPLACIAN_LEVELS, BLEND_LEVELS = 8, 8, 5

#: Local Laplacian: shades for which the pyramid is made, how much of a detail's size is kept, how
#: much is added, and the deviation of what counts as detail.
LAPLACIAN_SHADES = 8
TONE, DETAIL, DETAIL_RANGE = 0.8, 0.6, 0.12

#: Second derivative of eighth order: the coefficients at distances 0 to 4 (Fornberg, 1988).
STAR = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
#: Squared Courant number of the wave equation, and its steps.
COURANT2 = 0.1
WAVE_STEPS = 10

#: Steps of the heat equation.
HEAT_STEPS = 200

#: Steps of the multidimensional scaling.
SCALING_STEPS = 1000
