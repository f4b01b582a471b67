// PASSES: unroll-short-loops
// ARCH: x86-64-v4
//
// The rows and columns of a product of 2 x 2 matrices are unrolled: its loads and stores take turns
// along the loop over matrices. What repeats itself is loaded once.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NOT:       affine.for
// CHECK-COUNT-8:   affine.load
// CHECK-NOT:       affine.load
// CHECK:           affine.store %{{.*}}[%[[I]] * 4 + 3]
// CHECK:         polyblocks.kernel = "product"
//
// A row of eight is half a vector as it is; the loop around must be long; and rows that are further apart
// than they are long are no piece of memory.
//
// CHECK:         affine.for %{{.*}} = 0 to 500 {
// CHECK:           affine.for %{{.*}} = 0 to 8 {
// CHECK:         polyblocks.kernel = "eights"
// CHECK:         affine.for %{{.*}} = 0 to 12 {
// CHECK:           affine.for %{{.*}} = 0 to 3 {
// CHECK:         polyblocks.kernel = "few"
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK:           affine.for %{{.*}} = 0 to 3 {
// CHECK:         polyblocks.kernel = "apart"
func.func @main(%a: memref<4000xf32>, %b: memref<4000xf32>, %c: memref<4000xf32>, %d: memref<100x50xf32>) {
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 2 {
      affine.for %k = 0 to 2 {
        %0 = affine.load %a[%i * 4 + %j * 2] : memref<4000xf32>
        %1 = affine.load %b[%i * 4 + %k] : memref<4000xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = affine.load %a[%i * 4 + %j * 2 + 1] : memref<4000xf32>
        %4 = affine.load %b[%i * 4 + %k + 2] : memref<4000xf32>
        %5 = arith.mulf %3, %4 : f32
        %6 = arith.addf %2, %5 : f32
        affine.store %6, %c[%i * 4 + %j * 2 + %k] : memref<4000xf32>
      }
    }
  } {polyblocks.kernel = "product", polyblocks.kind = "contraction", polyblocks.sources = []}
  affine.for %i = 0 to 500 {
    affine.for %j = 0 to 8 {
      %0 = affine.load %a[%i * 8 + %j] : memref<4000xf32>
      %1 = affine.load %b[%i * 8] : memref<4000xf32>
      %2 = arith.mulf %0, %1 : f32
      affine.store %2, %c[%i * 8 + %j] : memref<4000xf32>
    }
  } {polyblocks.kernel = "eights", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 12 {
    affine.for %j = 0 to 3 {
      %0 = affine.load %a[%i * 3 + %j] : memref<4000xf32>
      %1 = affine.load %b[%i * 3] : memref<4000xf32>
      %2 = arith.mulf %0, %1 : f32
      affine.store %2, %c[%i * 3 + %j] : memref<4000xf32>
    }
  } {polyblocks.kernel = "few", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 3 {
      %0 = affine.load %a[%i * 3 + %j] : memref<4000xf32>
      %1 = affine.load %b[%i] : memref<4000xf32>
      %2 = arith.mulf %0, %1 : f32
      affine.store %2, %d[%i, %j] : memref<100x50xf32>
    }
  } {polyblocks.kernel = "apart", polyblocks.kind = "pointwise", polyblocks.sources = []}
  return
}
