// PASSES: form-scans
//
// The loop of the scan moves inside and carries the running value; what it started with keeps a
// buffer of its own.

// CHECK-LABEL: @main
// CHECK:         affine.store %cst
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:      %[[S:.*]] = affine.load %{{.*}}[%[[I]]] : memref<4xf64>
// CHECK-NEXT:      %{{.*}} = affine.for %[[K:.*]] = 0 to 8 iter_args(%[[A:.*]] = %[[S]]) -> (f64) {
// CHECK-NEXT:        %[[X:.*]] = affine.load %arg0[%[[K]], %[[I]]]
// CHECK:             %[[T:.*]] = arith.addf %[[A]], %{{.*}} : f64
// CHECK:             affine.store %{{.*}}, %arg1[%[[K]], %[[I]]]
// CHECK:             affine.yield %[[T]] : f64
//
// An accumulation alone is a reduction, and one that reads its results is neither.
//
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:        affine.load
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:        affine.load
func.func @main(%x: memref<8x4xf32>, %out: memref<8x4xf32>, %total: memref<4xf32>,
                %mixed: memref<4x8xf32>) {
  %last = memref.alloc() : memref<4xf64>
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 4 {
    affine.store %zero, %last[%i] : memref<4xf64>
  }
  affine.for %k = 0 to 8 {
    affine.for %i = 0 to 4 {
      %s = affine.load %last[%i] : memref<4xf64>
      %b = affine.load %x[%k, %i] : memref<8x4xf32>
      %w = arith.extf %b : f32 to f64
      %t = arith.addf %s, %w : f64
      %r = arith.truncf %t : f64 to f32
      affine.store %r, %out[%k, %i] : memref<8x4xf32>
      affine.store %t, %last[%i] : memref<4xf64>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %k = 0 to 8 {
      %s = affine.load %total[%i] : memref<4xf32>
      %b = affine.load %x[%k, %i] : memref<8x4xf32>
      %t = arith.addf %s, %b : f32
      affine.store %t, %total[%i] : memref<4xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %k = 0 to 8 {
      %s = affine.load %total[%i] : memref<4xf32>
      %b = affine.load %mixed[%i, 7 - %k] : memref<4x8xf32>
      %t = arith.addf %s, %b : f32
      affine.store %t, %mixed[%i, %k] : memref<4x8xf32>
      affine.store %t, %total[%i] : memref<4xf32>
    }
  }
  func.return
}
