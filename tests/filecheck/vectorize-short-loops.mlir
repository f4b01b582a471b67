// PASSES: vectorize-nests
//
// Short loops are vectors beside others that are: two elements are a whole vector, three one under a
// mask. Short sums stay as they are.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[ROW:.*]] = 0 to 8 {
// CHECK:           vector.load {{.*}} : memref<8x64xf32>, vector<16xf32>
// CHECK:           vector.load {{.*}} : memref<8x2xf32>, vector<2xf32>
// CHECK-NOT:       affine.load
// CHECK:           vector.maskedload {{.*}} : memref<8x3xf32>
// CHECK:           vector.maskedstore
// CHECK:           affine.for %{{.*}} = 0 to 2 iter_args
// CHECK-NEXT:        affine.load
module {
  func.func @main(%x: memref<8x64xf32>, %pair: memref<8x2xf32>, %triple: memref<8x3xf32>, %y: memref<8x64xf32>, %other: memref<8x2xf32>, %third: memref<8x3xf32>, %sum: memref<8xf32>) {
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 64 {
        %a = affine.load %x[%i, %j] : memref<8x64xf32>
        affine.store %a, %y[%i, %j] : memref<8x64xf32>
      }
      affine.for %j = 0 to 2 {
        %a = affine.load %pair[%i, %j] : memref<8x2xf32>
        affine.store %a, %other[%i, %j] : memref<8x2xf32>
      }
      affine.for %j = 0 to 3 {
        %a = affine.load %triple[%i, %j] : memref<8x3xf32>
        affine.store %a, %third[%i, %j] : memref<8x3xf32>
      }
      %zero = arith.constant 0.0 : f32
      %s = affine.for %j = 0 to 2 iter_args(%acc = %zero) -> (f32) {
        %a = affine.load %pair[%i, %j] : memref<8x2xf32>
        %b = arith.addf %acc, %a : f32
        affine.yield %b : f32
      }
      affine.store %s, %sum[%i] : memref<8xf32>
    } {polyblocks.tile}
    return
  }
}
