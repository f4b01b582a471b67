// PASSES: jam-stencils
//
// Boxes of three rows: two of four rows are the same for neighbours, and so is their sum. A term
// with a factor of zero stays, since it may be no number.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[Y:.*]] = 0 to 31 {
// CHECK:           affine.for %[[X:.*]] = 0 to 1024 {
// CHECK-DAG:         affine.load %{{.*}}[%[[Y]] * 2, %[[X]]]
// CHECK-DAG:         affine.load %{{.*}}[%[[Y]] * 2 + 1, %[[X]]]
// CHECK-DAG:         affine.load %{{.*}}[%[[Y]] * 2 + 2, %[[X]]]
// CHECK:             %[[FIRST:.*]] = arith.addf
// CHECK:             affine.store %{{.*}}, %{{.*}}[%[[Y]] * 2, %[[X]]]
// CHECK:             affine.load %{{.*}}[%[[Y]] * 2 + 3, %[[X]]]
// CHECK:             affine.store %{{.*}}, %{{.*}}[%[[Y]] * 2 + 1, %[[X]]]
// CHECK:         affine.for %[[Z:.*]] = 0 to 64 {
// CHECK-NEXT:      affine.for
// CHECK-NEXT:        affine.load
// CHECK-NEXT:        affine.store
// What is read after it is stored stays as it is.

// CHECK:         affine.for %{{.*}} = 0 to 62 {
// CHECK-NEXT:      affine.for
// CHECK:             affine.store
// CHECK-NEXT:        affine.load
// CHECK:             affine.store
// CHECK-NEXT:      }
func.func @main(%a: memref<64x1024xf32>, %b: memref<62x1024xf32>, %c: memref<64x1024xf32>,
                %d: memref<62x1024xf32>, %e: memref<62x1024xf32>) {
  affine.for %y = 0 to 62 {
    affine.for %x = 0 to 1024 {
      %0 = affine.load %a[%y, %x] : memref<64x1024xf32>
      %1 = affine.load %a[%y + 1, %x] : memref<64x1024xf32>
      %2 = affine.load %a[%y + 2, %x] : memref<64x1024xf32>
      %s = arith.addf %0, %1 fastmath<reassoc,contract> : f32
      %t = arith.addf %s, %2 fastmath<reassoc,contract> : f32
      affine.store %t, %b[%y, %x] : memref<62x1024xf32>
    }
  }
  affine.for %y = 0 to 64 {
    affine.for %x = 0 to 1024 {
      %0 = affine.load %a[%y, %x] : memref<64x1024xf32>
      affine.store %0, %c[%y, %x] : memref<64x1024xf32>
    }
  }
  affine.for %y = 0 to 62 {
    affine.for %x = 0 to 1024 {
      %0 = affine.load %a[%y, %x] : memref<64x1024xf32>
      %1 = affine.load %a[%y + 1, %x] : memref<64x1024xf32>
      %2 = affine.load %a[%y + 2, %x] : memref<64x1024xf32>
      %s = arith.addf %0, %1 fastmath<reassoc,contract> : f32
      %t = arith.addf %s, %2 fastmath<reassoc,contract> : f32
      affine.store %t, %d[%y, %x] : memref<62x1024xf32>
      %u = affine.load %d[%y, %x] : memref<62x1024xf32>
      %v = arith.mulf %u, %u : f32
      affine.store %v, %e[%y, %x] : memref<62x1024xf32>
    }
  }
  return
}
