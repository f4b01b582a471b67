"""Functions that do not compile whole: parts that do, and operations that TensorFlow runs."""
