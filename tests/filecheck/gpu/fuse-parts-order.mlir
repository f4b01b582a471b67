// PASSES: fuse-parts
// TARGET: nvgpu sm_80
//
// What the first half is computed from is overwritten before the second half is: where both are
// read, the first one could not be computed any more.

// CHECK-LABEL: func.func @main
// CHECK:       affine.store %{{.*}}, %[[T:.*]][%{{.*}}, %{{.*}}] : memref<512x128xf16>
// CHECK:       affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<512x64xf16>
// CHECK:       affine.store %{{.*}}, %[[T]][%{{.*}}, %{{.*}} + 64] : memref<512x128xf16>
// CHECK:       affine.load %[[T]]
func.func @main(%x: memref<512x64xf16>, %y: memref<512x64xf16>, %at: memref<512xi64>, %cache: memref<1024x128xf16>) {
  %t = memref.alloc() : memref<512x128xf16>
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<512x64xf16>
      %n = arith.negf %v : f16
      affine.store %n, %t[%i, %j] : memref<512x128xf16>
    }
  }
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<512x64xf16>
      %n = math.exp %v : f16
      affine.store %n, %x[%i, %j] : memref<512x64xf16>
    }
  }
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %y[%i, %j] : memref<512x64xf16>
      affine.store %v, %t[%i, %j + 64] : memref<512x128xf16>
    }
  }
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 128 {
      %v = affine.load %t[%i, %j] : memref<512x128xf16>
      %p = affine.load %at[%i] : memref<512xi64>
      %q = arith.index_cast %p : i64 to index
      memref.store %v, %cache[%q, %j] : memref<1024x128xf16>
    }
  }
  return
}
