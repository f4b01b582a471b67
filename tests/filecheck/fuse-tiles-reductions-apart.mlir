// PASSES: fuse-tiles,fuse-sibling-loops
// OPTIONS: polyblocks_disable_reduce_reduce_fusion
//
// With the option, the sum is not fused with the maximum that it depends on; the point-wise nest
// between them is. Without it: fuse-tiles-reductions.mlir.

// CHECK-LABEL: func.func @main
// CHECK:         %[[MAX:.*]] = memref.alloc() : memref<4096xf32>
// CHECK:         affine.for %{{.*}} = 0 to 4096 {
// CHECK:           arith.maximumf
// CHECK-NOT:       math.exp
// CHECK:           affine.store %{{.*}}, %[[MAX]]
// CHECK:         affine.for %{{.*}} = 0 to 4096 {
// CHECK:           affine.load %[[MAX]]
// CHECK:           math.exp
// CHECK:           arith.addf
// CHECK:         return
func.func @main(%x: memref<4096x4096xf32>, %sums: memref<4096xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %max = memref.alloc() : memref<4096xf32>
  %exp = memref.alloc() : memref<4096x4096xf32>
  affine.for %i = 0 to 4096 {
    %m = affine.for %j = 0 to 4096 iter_args(%a = %low) -> (f32) {
      %v = affine.load %x[%i, %j] : memref<4096x4096xf32>
      %n = arith.maximumf %a, %v : f32
      affine.yield %n : f32
    }
    affine.store %m, %max[%i] : memref<4096xf32>
  }
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4096 {
      %v = affine.load %x[%i, %j] : memref<4096x4096xf32>
      %m = affine.load %max[%i] : memref<4096xf32>
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      affine.store %e, %exp[%i, %j] : memref<4096x4096xf32>
    }
  }
  affine.for %i = 0 to 4096 {
    %s = affine.for %j = 0 to 4096 iter_args(%a = %zero) -> (f32) {
      %v = affine.load %exp[%i, %j] : memref<4096x4096xf32>
      %n = arith.addf %a, %v : f32
      affine.yield %n : f32
    }
    affine.store %s, %sums[%i] : memref<4096xf32>
  }
  return
}
