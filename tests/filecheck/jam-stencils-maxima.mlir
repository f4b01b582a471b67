// PASSES: jam-stencils
//
// The largest of three rows, for neighbours: two of four rows are the same, and so is the larger
// one. Where the sign of a zero matters, the order is that of the program.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[Y:.*]] = 0 to 31 {
// CHECK:           affine.for %[[X:.*]] = 0 to 1024 {
// CHECK-COUNT-3:     arith.maximumf
// CHECK-NOT:         arith.maximumf
// CHECK:             affine.store %{{.*}}, %{{.*}}[%[[Y]] * 2 + 1, %[[X]]]
// CHECK:         affine.for
// CHECK-COUNT-4:     arith.maximumf
// CHECK:             affine.store %{{.*}}, %{{.*}}[%{{.*}} * 2 + 1, %{{.*}}]
func.func @main(%a: memref<64x1024xf32>, %b: memref<62x1024xf32>, %c: memref<62x1024xf32>) {
  affine.for %y = 0 to 62 {
    affine.for %x = 0 to 1024 {
      %0 = affine.load %a[%y, %x] : memref<64x1024xf32>
      %1 = affine.load %a[%y + 1, %x] : memref<64x1024xf32>
      %2 = affine.load %a[%y + 2, %x] : memref<64x1024xf32>
      %s = arith.maximumf %0, %1 fastmath<nsz> : f32
      %t = arith.maximumf %s, %2 fastmath<nsz> : f32
      affine.store %t, %b[%y, %x] : memref<62x1024xf32>
    }
  }
  affine.for %y = 0 to 62 {
    affine.for %x = 0 to 1024 {
      %0 = affine.load %a[%y, %x] : memref<64x1024xf32>
      %1 = affine.load %a[%y + 1, %x] : memref<64x1024xf32>
      %2 = affine.load %a[%y + 2, %x] : memref<64x1024xf32>
      %s = arith.maximumf %0, %1 : f32
      %t = arith.maximumf %s, %2 : f32
      affine.store %t, %c[%y, %x] : memref<62x1024xf32>
    }
  }
  return
}
