// PASSES: tile-transposes,vectorize-nests
// ARCH: x86-64-v4
//
// Parts of complex numbers are transposed in squares too: what is read across is taken apart before,
// and what is stored is put together row by row.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     affine.load
// CHECK-COUNT-32: vector.load %{{.*}} vector<16xf32>
// CHECK:         vector.store %{{.*}}, %arg1
// CHECK:         vector.store %{{.*}}, %arg2
// CHECK-NOT:     affine.load
// CHECK-NOT:     memref.load
// CHECK:         return
func.func @main(%z: memref<256x32x2xf32>, %re: memref<32x256xf32>, %im: memref<32x256xf32>,
                %y: memref<256x32x2xf32>) {
  affine.for %t = 0 to 32 {
    affine.for %o = 0 to 256 {
      %a = affine.load %z[%o, %t, 0] : memref<256x32x2xf32>
      affine.store %a, %re[%t, %o] : memref<32x256xf32>
      %b = affine.load %z[%o, %t, 1] : memref<256x32x2xf32>
      affine.store %b, %im[%t, %o] : memref<32x256xf32>
    }
  }
  affine.for %o = 0 to 256 {
    affine.for %t = 0 to 32 {
      %a = affine.load %re[%t, %o] : memref<32x256xf32>
      %b = affine.load %im[%t, %o] : memref<32x256xf32>
      affine.store %a, %y[%o, %t, 0] : memref<256x32x2xf32>
      affine.store %b, %y[%o, %t, 1] : memref<256x32x2xf32>
    }
  }
  return
}
