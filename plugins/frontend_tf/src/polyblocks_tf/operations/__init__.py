"""Operations that TensorFlow's bridge does not translate, in operations that it does."""
