"""Numbers that the algorithms share, so that every framework computes the same."""

#: Softening and time step of the N-body system.
SOFTENING = 0.05
TIME_STEP = 0.01

#: Steps and rate of multidimensional scaling's gradient descent, and what keeps distances from 0.
SCALING_STEPS = 4
SCALING_RATE = 0.02
SCALING_EPS = 1e-6

#: Interest and volatility of the option prices.
INTEREST = 0.05
VOLATILITY = 0.2

#: Iterations of z^2 + c, and the squared magnitude beyond which z escapes.
ESCAPE_STEPS = 12
ESCAPE = 4.0

#: Diffusion of two substances, feed and kill rate, and time step of their reaction.
DIFFUSE_U, DIFFUSE_V = 0.16, 0.08
FEED, KILL = 0.035, 0.065

#: Adam's rates.
RATE, BETA1, BETA2, ADAM_EPS = 1e-3, 0.9, 0.999, 1e-8
ADAM_STEP = 10

#: Levels of brightness in a histogram.
LEVELS = 256

#: Gradients weaker than this are no edges.
EDGE = 0.2

#: RGB to YCbCr: luma weights, and the scales of the two chroma channels.
LUMA = (0.299, 0.587, 0.114)
BLUE_SCALE, RED_SCALE = 0.564, 0.713

#: Steps of the travelling wave, and its squared Courant number.
WAVE_STEPS = 4
COURANT2 = 0.2
