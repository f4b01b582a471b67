// PASSES: fuse-tiles
//
// The nest of the maxima stores them twice: as they are for a nest behind the group, and without
// infinities for the group. Tiles write their parts of the first ones beside those of the second.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[RAW:[a-z0-9]+]]: memref<4096xf32>, %[[SUMS:[a-z0-9]+]]: memref<4096xf32>, %[[LOGS:[a-z0-9]+]]: memref<4096xf32>
// CHECK-NOT:     memref.alloc()
// CHECK:         affine.for %[[T:.*]] = 0 to 4096 {
// CHECK:           %[[MAX:.*]] = memref.alloca() {{.*}} : memref<1xf32>
// CHECK:           arith.maximumf
// CHECK:           affine.store %{{.*}}, %[[RAW]][%[[T]]
// CHECK:           affine.store %{{.*}}, %[[MAX]][0]
// CHECK:           math.exp
// CHECK:           affine.store %{{.*}}, %[[SUMS]]
// CHECK:         affine.for
// CHECK:           affine.load %[[RAW]]
// CHECK:           affine.store %{{.*}}, %[[LOGS]]
func.func @main(%x: memref<4096x4096xf32>, %raw: memref<4096xf32>, %sums: memref<4096xf32>, %logs: memref<4096xf32>) {
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
    affine.store %m, %raw[%i] : memref<4096xf32>
    %c = arith.cmpf oeq, %m, %low : f32
    %s = arith.select %c, %zero, %m : f32
    affine.store %s, %max[%i] : memref<4096xf32>
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
  affine.for %i = 0 to 4096 {
    %v = affine.load %raw[%i] : memref<4096xf32>
    %m = affine.load %sums[%i] : memref<4096xf32>
    %l = math.log %m : f32
    %n = arith.addf %v, %l : f32
    affine.store %n, %logs[%i] : memref<4096xf32>
  }
  return
}
