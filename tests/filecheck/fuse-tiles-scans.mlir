// PASSES: classify-nests,fuse-tiles
//
// A scan whose rows will be lanes stays apart from the nests around it; one that vectors go along
// joins them.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloca
// CHECK:         affine.for %{{.*}} = 0 to 4096 {
// CHECK:           affine.for %{{.*}} = 0 to 2048 iter_args(
// CHECK:             math.exp
// CHECK:         affine.for %{{.*}} = 0 to 4096 {
// CHECK:           affine.for %{{.*}} = 0 to 2048 {
// CHECK:             math.absf
//
// CHECK:         memref.alloca
// CHECK:           iter_args(
// CHECK:           math.absf
func.func @main(%a: memref<4096x2048xf32>, %b: memref<4096x2048xf32>, %c: memref<4096x2048xf32>) {
  %m = memref.alloc() : memref<4096x2048xf32>
  affine.for %i = 0 to 4096 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 2048 iter_args(%s = %z) -> f32 {
      %x = affine.load %a[%i, %k] : memref<4096x2048xf32>
      %e = math.exp %s : f32
      %y = arith.addf %e, %x : f32
      affine.store %y, %m[%i, %k] : memref<4096x2048xf32>
      affine.yield %y : f32
    }
  }
  affine.for %i = 0 to 4096 {
    affine.for %k = 0 to 2048 {
      %x = affine.load %m[%i, %k] : memref<4096x2048xf32>
      %y = affine.load %m[%i, 2047 - %k] : memref<4096x2048xf32>
      %u = math.absf %x : f32
      %v = arith.addf %u, %y : f32
      affine.store %v, %b[%i, %k] : memref<4096x2048xf32>
    }
  }
  %n = memref.alloc() : memref<4096x2048xf32>
  affine.for %i = 0 to 4096 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 2048 iter_args(%s = %z) -> f32 {
      %x = affine.load %a[%i, %k] : memref<4096x2048xf32>
      %y = arith.addf %s, %x fastmath<reassoc> : f32
      affine.store %y, %n[%i, %k] : memref<4096x2048xf32>
      affine.yield %y : f32
    }
  }
  affine.for %i = 0 to 4096 {
    affine.for %k = 0 to 2048 {
      %x = affine.load %n[%i, %k] : memref<4096x2048xf32>
      %y = affine.load %n[%i, 2047 - %k] : memref<4096x2048xf32>
      %u = math.absf %x : f32
      %v = arith.addf %u, %y : f32
      affine.store %v, %c[%i, %k] : memref<4096x2048xf32>
    }
  }
  return
}
