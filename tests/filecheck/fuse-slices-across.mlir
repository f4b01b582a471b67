// PASSES: classify-nests,fuse-slices
// ARCH: x86-64-v4
//
// A transposition stays a nest of its own where an iteration would read it at several places: each
// takes a square of registers. One place is read across as well.

// CHECK-LABEL: func.func @main
// CHECK:         memref.alloc() {{.*}}: memref<64x64xf32>
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %[[I:.*]] = 0 to 64
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 64
// CHECK-NEXT:        affine.load %arg0
// CHECK-NEXT:        affine.store
// CHECK:             affine.load %arg2[%[[B:.*]], %[[A:.*]]]
// CHECK:             affine.store %{{.*}}, %arg3[%[[A]], %[[B]]]
func.func @main(%a: memref<64x64xf32>, %b: memref<16x64xf32>,
                %c: memref<64x64xf32>, %d: memref<64x64xf32>) {
  %m = memref.alloc() : memref<64x64xf32>
  %n = memref.alloc() : memref<64x64xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%j, %i] : memref<64x64xf32>
      affine.store %x, %m[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 64 {
      %x = affine.load %m[%i, %j] : memref<64x64xf32>
      %y = affine.load %m[%i + 16, %j] : memref<64x64xf32>
      %z = affine.load %m[%i + 32, %j] : memref<64x64xf32>
      %w = affine.load %m[%i + 48, %j] : memref<64x64xf32>
      %s = arith.addf %x, %y : f32
      %t = arith.addf %z, %w : f32
      %u = arith.mulf %s, %t : f32
      affine.store %u, %b[%i, %j] : memref<16x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %c[%j, %i] : memref<64x64xf32>
      affine.store %x, %n[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %n[%i, %j] : memref<64x64xf32>
      %y = arith.negf %x : f32
      affine.store %y, %d[%i, %j] : memref<64x64xf32>
    }
  }
  return
}
