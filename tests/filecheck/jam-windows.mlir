// PASSES: classify-nests,jam-windows
// TARGET: gpu
//
// A thread computes several of a window's sums, which share rows of the image. Elements beside each
// other are loaded once for all of them.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[Y:.*]] = 0 to {{[0-9]+}} {
// CHECK-NEXT:      affine.for %[[X:.*]] = 0 to {{[0-9]+}} {
// CHECK-NOT:         affine.for
// CHECK:             affine.store %{{.*}}, %arg1[%[[Y]] * [[N:[0-9]+]], %[[X]]
// CHECK:             affine.store %{{.*}}, %arg1[%[[Y]] * [[N]] + 1, %[[X]]

func.func @main(%a: memref<4104x4096xf32>, %b: memref<4096x4096xf32>) {
  affine.for %y = 0 to 4096 {
    affine.for %x = 0 to 4096 {
      %0 = affine.load %a[%y + 0, %x] : memref<4104x4096xf32>
      %1 = affine.load %a[%y + 1, %x] : memref<4104x4096xf32>
      %2 = affine.load %a[%y + 2, %x] : memref<4104x4096xf32>
      %3 = affine.load %a[%y + 3, %x] : memref<4104x4096xf32>
      %4 = affine.load %a[%y + 4, %x] : memref<4104x4096xf32>
      %5 = affine.load %a[%y + 5, %x] : memref<4104x4096xf32>
      %6 = affine.load %a[%y + 6, %x] : memref<4104x4096xf32>
      %7 = affine.load %a[%y + 7, %x] : memref<4104x4096xf32>
      %8 = affine.load %a[%y + 8, %x] : memref<4104x4096xf32>
      %s1 = arith.addf %0, %1 : f32
      %s2 = arith.addf %s1, %2 : f32
      %s3 = arith.addf %s2, %3 : f32
      %s4 = arith.addf %s3, %4 : f32
      %s5 = arith.addf %s4, %5 : f32
      %s6 = arith.addf %s5, %6 : f32
      %s7 = arith.addf %s6, %7 : f32
      %s8 = arith.addf %s7, %8 : f32
      affine.store %s8, %b[%y, %x] : memref<4096x4096xf32>
    }
  }
  return
}
