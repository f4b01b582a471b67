// PASSES: fuse-tiles
// ARCH: znver4
//
// An output of interior points and of margins, each with a nest of its own. Stores to a part of a
// row go through the caches, in one nest as in nests of their own: there is nothing to lose by one
// nest, and steps that these points are computed of can join it.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 1]
// CHECK:           affine.store %{{.*}}, %{{.*}}[%{{.*}}, 2047]
// CHECK:         polyblocks.tile}
// CHECK-NEXT:    return
func.func @main(
    %x: memref<2048x2048xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "x", role = "input", shape = array<i64: 2048, 2048>, strides = array<i64: 2048, 1>, updates = -1 : i64}},
    %out: memref<2048x2048xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "out", role = "output", shape = array<i64: 2048, 2048>, strides = array<i64: 2048, 1>, updates = -1 : i64}}) {
  affine.for %i = 0 to 2046 {
    affine.for %j = 0 to 2046 {
      %a = affine.load %x[%i, %j + 1] : memref<2048x2048xf32>
      %b = affine.load %x[%i + 1, %j] : memref<2048x2048xf32>
      %c = affine.load %x[%i + 1, %j + 2] : memref<2048x2048xf32>
      %d = affine.load %x[%i + 2, %j + 1] : memref<2048x2048xf32>
      %e = arith.addf %a, %b : f32
      %f = arith.addf %c, %d : f32
      %g = arith.addf %e, %f : f32
      affine.store %g, %out[%i + 1, %j + 1] : memref<2048x2048xf32>
    }
  }
  affine.for %i = 0 to 2046 {
    %a = affine.load %x[%i + 1, 0] : memref<2048x2048xf32>
    affine.store %a, %out[%i + 1, 0] : memref<2048x2048xf32>
  }
  affine.for %i = 0 to 2046 {
    %a = affine.load %x[%i + 1, 2047] : memref<2048x2048xf32>
    affine.store %a, %out[%i + 1, 2047] : memref<2048x2048xf32>
  }
  affine.for %j = 0 to 2048 {
    %a = affine.load %x[0, %j] : memref<2048x2048xf32>
    affine.store %a, %out[0, %j] : memref<2048x2048xf32>
  }
  affine.for %j = 0 to 2048 {
    %a = affine.load %x[2047, %j] : memref<2048x2048xf32>
    affine.store %a, %out[2047, %j] : memref<2048x2048xf32>
  }
  return
}
