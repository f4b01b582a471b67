"""Numbers that the cases' functions share, so that every framework computes the same."""

#: Taps of the demo's blur.
BLUR = (0.0625, 0.25, 0.375, 0.25, 0.0625)

#: Added to variances and mean squares before the root.
NORM_EPS = 1e-5

#: Groups of channels of the group normalization.
GROUPS = 8

#: Binomial taps: a Gaussian blur of the image pipeline.
BINOMIAL = (0.0625, 0.25, 0.375, 0.25, 0.0625)
#: Harris' constant of the corner measure.
HARRIS = 0.05
#: How fast a corner loses its sharpening.
CORNER_SCALE = 500.0
#: Variance of the detail that counts as noise.
CONTRAST_FLOOR = 1e-4
#: Amount of sharpening where there is no contrast yet.
SHARPNESS = 1.5

#: Time steps of the heat equation, and diffusivity times the time step over the squared distance.
STEPS = 10
DIFFUSION = 0.2
