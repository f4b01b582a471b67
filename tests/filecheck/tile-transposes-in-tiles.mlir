// PASSES: fuse-tiles,tile-transposes
//
// A transposition within a tile is done in squares, and its edges are loops behind it.

// CHECK-LABEL: func.func @main
// CHECK:         memref.alloca
// CHECK:           affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:          affine.load
// CHECK-NEXT:          affine.store
// CHECK:           affine.for %{{.*}} = 0 to 4 {
// CHECK:             affine.load
func.func @main(%a: memref<512x4096xf32>, %b: memref<512x4096xf32>) {
  %m = memref.alloc() : memref<512x3264xf32>
  affine.for %o = 0 to 512 {
    affine.for %p = 0 to 48 {
      affine.for %q = 0 to 68 {
        %x = affine.load %a[%o, %q * 48 + %p] : memref<512x4096xf32>
        affine.store %x, %m[%o, %p * 68 + %q] : memref<512x3264xf32>
      }
    }
  }
  affine.for %o = 0 to 512 {
    affine.for %i = 0 to 1632 {
      %x = affine.load %m[%o, %i] : memref<512x3264xf32>
      %y = affine.load %m[%o, %i + 1632] : memref<512x3264xf32>
      %s = arith.addf %x, %y : f32
      affine.store %s, %b[%o, %i] : memref<512x4096xf32>
    }
  }
  return
}
