"""Models of Keras 3: training, evaluation and prediction, and models as layers of others."""
