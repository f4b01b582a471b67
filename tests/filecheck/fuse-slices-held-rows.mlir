// PASSES: classify-nests,fuse-slices
// ARCH: x86-64-v4
//
// Rows that are held at their ends are in order between these: an iteration that reads several of
// them reads what they are made of.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %{{.*}} = 0 to 16
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64
// CHECK-COUNT-4:     affine.load %arg0
// CHECK:             affine.store %{{.*}}, %arg1
#held = affine_map<(d0) -> (d0 - (d0 + 63) floordiv 64 - (d0 + 1) floordiv 64)>
func.func @main(%a: memref<64x62xf32>, %b: memref<16x64xf32>) {
  %m = memref.alloc() : memref<64x64xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %p = affine.apply #held(%j)
      %x = affine.load %a[%i, %p] : memref<64x62xf32>
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
  return
}
