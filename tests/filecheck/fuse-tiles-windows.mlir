// PASSES: classify-nests,fuse-tiles
// TARGET: gpu
//
// A window of an array that a copy has zeros around: threads read the array itself, and make the
// zeros. The copies are gone.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     affine.store %{{.*}}, %alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 2048 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 2048 {
// CHECK-COUNT-9:     affine.load %arg0[%[[I]]{{.*}}, %[[J]]
// CHECK:             affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]

func.func @main(%x: memref<2048x2048xf32>, %y: memref<2048x2048xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<2050x2050xf32>
  affine.for %i = 0 to 2050 {
    affine.store %zero, %p[0, %i] : memref<2050x2050xf32>
  }
  affine.for %i = 0 to 2050 {
    affine.store %zero, %p[2049, %i] : memref<2050x2050xf32>
  }
  affine.for %i = 0 to 2048 {
    affine.store %zero, %p[%i + 1, 0] : memref<2050x2050xf32>
  }
  affine.for %i = 0 to 2048 {
    affine.store %zero, %p[%i + 1, 2049] : memref<2050x2050xf32>
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %v = affine.load %x[%i, %j] : memref<2048x2048xf32>
      affine.store %v, %p[%i + 1, %j + 1] : memref<2050x2050xf32>
    }
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %v0 = affine.load %p[%i + 0, %j + 0] : memref<2050x2050xf32>
      %v1 = affine.load %p[%i + 0, %j + 1] : memref<2050x2050xf32>
      %v2 = affine.load %p[%i + 0, %j + 2] : memref<2050x2050xf32>
      %v3 = affine.load %p[%i + 1, %j + 0] : memref<2050x2050xf32>
      %v4 = affine.load %p[%i + 1, %j + 1] : memref<2050x2050xf32>
      %v5 = affine.load %p[%i + 1, %j + 2] : memref<2050x2050xf32>
      %v6 = affine.load %p[%i + 2, %j + 0] : memref<2050x2050xf32>
      %v7 = affine.load %p[%i + 2, %j + 1] : memref<2050x2050xf32>
      %v8 = affine.load %p[%i + 2, %j + 2] : memref<2050x2050xf32>
      %s1 = arith.addf %v0, %v1 : f32
      %s2 = arith.addf %s1, %v2 : f32
      %s3 = arith.addf %s2, %v3 : f32
      %s4 = arith.addf %s3, %v4 : f32
      %s5 = arith.addf %s4, %v5 : f32
      %s6 = arith.addf %s5, %v6 : f32
      %s7 = arith.addf %s6, %v7 : f32
      %s8 = arith.addf %s7, %v8 : f32
      affine.store %s8, %y[%i, %j] : memref<2048x2048xf32>
    }
  }
  return
}
