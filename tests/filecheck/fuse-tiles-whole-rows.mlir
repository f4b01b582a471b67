// PASSES: classify-nests,fuse-tiles
//
// Two loops count through a row together, in an order of their own, and a stage stores two parts of
// it: a tile has whole rows, and what is between two stages is a row in a buffer of the tile.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %[[T:.*]] = 0 to
// CHECK:           memref.alloca() {{.*}} : memref<{{.*}}4096xf32>
// CHECK:           affine.for
// CHECK:             affine.store
// CHECK:             affine.store
// CHECK:           affine.for
// CHECK:             affine.store %{{.*}}, %arg1
func.func @main(%a: memref<512x4096xf32>, %b: memref<512x2048xf32>) {
  %m = memref.alloc() : memref<512x4096xf32>
  affine.for %o = 0 to 512 {
    affine.for %p = 0 to 32 {
      affine.for %q = 0 to 64 {
        %x = affine.load %a[%o, %p * 64 + %q] : memref<512x4096xf32>
        %y = affine.load %a[%o, %p * 64 + %q + 2048] : memref<512x4096xf32>
        %s = arith.addf %x, %y : f32
        %d = arith.subf %x, %y : f32
        affine.store %s, %m[%o, %p * 128 + %q] : memref<512x4096xf32>
        affine.store %d, %m[%o, %p * 128 + %q + 64] : memref<512x4096xf32>
      }
    }
  }
  affine.for %o = 0 to 512 {
    affine.for %i = 0 to 2048 {
      %x = affine.load %m[%o, %i] : memref<512x4096xf32>
      %y = affine.load %m[%o, %i + 2048] : memref<512x4096xf32>
      %s = arith.addf %x, %y : f32
      affine.store %s, %b[%o, %i] : memref<512x2048xf32>
    }
  }
  return
}
