"""Variables that compiled programs read and assign without operations of TensorFlow."""
