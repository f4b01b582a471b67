// PASSES: fuse-tiles
// TARGET: nvgpu sm_90
//
// What nothing else in a group reads is computed with it where both read the same rows from memory:
// the mean of each row, and the sum of squared differences from it.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 32768 {
// CHECK:           affine.load %arg0
// CHECK-NOT:       affine.load %arg0
// CHECK-DAG:       affine.store %{{.*}}, %arg1
// CHECK-DAG:       affine.store %{{.*}}, %arg2
// CHECK-NOT:     affine.load %arg0
// CHECK:       return
func.func @main(%x: memref<32768x1024xf32>, %mean: memref<32768xf32>, %squares: memref<32768xf32>) {
  %zero = arith.constant 0.0 : f32
  %part = arith.constant 9.765625e-04 : f32
  %m = memref.alloc() : memref<32768xf32>
  affine.for %i = 0 to 32768 {
    %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> f32 {
      %v = affine.load %x[%i, %k] : memref<32768x1024xf32>
      %u = arith.addf %t, %v : f32
      affine.yield %u : f32
    }
    %e = arith.mulf %s, %part : f32
    affine.store %e, %mean[%i] : memref<32768xf32>
  }
  affine.for %i = 0 to 32768 {
    %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> f32 {
      %v = affine.load %x[%i, %k] : memref<32768x1024xf32>
      %u = arith.addf %t, %v : f32
      affine.yield %u : f32
    }
    %e = arith.mulf %s, %part : f32
    affine.store %e, %m[%i] : memref<32768xf32>
  }
  affine.for %i = 0 to 32768 {
    %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) -> f32 {
      %v = affine.load %x[%i, %k] : memref<32768x1024xf32>
      %a = affine.load %m[%i] : memref<32768xf32>
      %d = arith.subf %v, %a : f32
      %w = arith.mulf %d, %d : f32
      %u = arith.addf %t, %w : f32
      affine.yield %u : f32
    }
    affine.store %s, %squares[%i] : memref<32768xf32>
  }
  return
}
