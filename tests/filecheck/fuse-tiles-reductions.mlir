// PASSES: fuse-tiles
//
// A sum over what a maximum over the same rows gave, with a point-wise nest between them, runs tile
// by tile: a tile of rows stays in the cache. The same module with the option that keeps them apart
// is fuse-tiles-reductions-apart.mlir.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc()
// CHECK:         affine.for %[[T:.*]] = 0 to 4096 {
// CHECK:           %[[MAX:.*]] = memref.alloca() {{.*}} : memref<1xf32>
// CHECK:           arith.maximumf
// CHECK:           affine.store %{{.*}}, %[[MAX]][0]
// CHECK:           affine.load %[[MAX]][0]
// CHECK:           math.exp
// CHECK:           arith.addf
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
