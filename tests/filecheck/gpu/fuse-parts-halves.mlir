// PASSES: fuse-parts
// TARGET: nvgpu sm_80
//
// Halves change places, and one its sign, as rotary embeddings have it: they are computed where the
// nest that reads them stores its rows at run-time places, of which no tile is made. Elements of
// the other half are found by a step, at which no loop is cut.

// CHECK-LABEL: func.func @main
// CHECK-NOT:   memref.alloc
// CHECK:       affine.for %[[I:.*]] = 0 to 512 {
// CHECK:         affine.for %[[X:.*]] = 0 to 128 {
// CHECK:           %[[A:.*]] = affine.load %{{.*}}[%[[I]], %[[X]] - ((%[[X]] + 64) floordiv 128) * 64 + 64] : memref<512x128xf16>
// CHECK:           %[[N:.*]] = arith.negf %[[A]]
// CHECK:           %[[B:.*]] = affine.load %{{.*}}[%[[I]], %[[X]] - ((%[[X]] + 64) floordiv 128) * 64] : memref<512x128xf16>
// CHECK:           %[[FIRST:.*]] = arith.cmpi slt, %{{.*}}, %c64
// CHECK:           %[[V:.*]] = arith.select %[[FIRST]], %[[N]], %[[B]] : f16
// CHECK:           memref.store %[[V]], %{{.*}}[%{{.*}}, %{{.*}}] : memref<1024x128xf16>
func.func @main(%x: memref<512x128xf16>, %at: memref<512xi64>, %cache: memref<1024x128xf16>) {
  %t = memref.alloc() : memref<512x128xf16>
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j + 64] : memref<512x128xf16>
      %n = arith.negf %v : f16
      affine.store %n, %t[%i, %j] : memref<512x128xf16>
    }
  }
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<512x128xf16>
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
