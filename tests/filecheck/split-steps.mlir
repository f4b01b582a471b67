// PASSES: split-steps
//
// A row that is held at its ends has three parts; an enlarged one a loop over pairs. Rows are left
// as they are where only the number of the row jumps.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[Y:.*]] = 0 to 4 {
// CHECK:           affine.for %{{.*}} = 0 to 1 {
// CHECK:             affine.load %{{.*}}[%[[Y]], 0] : memref<4x8xf32>
// CHECK:           affine.for %[[X:.*]] = 0 to 8 {
// CHECK:             affine.load %{{.*}}[%[[Y]], %[[X]]] : memref<4x8xf32>
// CHECK:           affine.for %{{.*}} = 0 to 1 {
// CHECK:             affine.load %{{.*}}[%[[Y]], 7] : memref<4x8xf32>
// CHECK:         affine.for %[[Y:.*]] = 0 to 4 {
// CHECK:           affine.for %{{.*}} = 0 to 1 {
// CHECK:             affine.load %{{.*}}[%[[Y]], 0] : memref<4x33xf32>
// CHECK:           affine.for %[[G:.*]] = 0 to 31 {
// CHECK:             affine.for %[[D:.*]] = 0 to 2 {
// CHECK:               affine.load %{{.*}}[%[[Y]], %[[G]] + 1] : memref<4x33xf32>
// CHECK:               affine.store %{{.*}}, %{{.*}}[%[[Y]], %[[G]] * 2 + %[[D]] + 1] : memref<4x64xf32>
// CHECK:           affine.for %{{.*}} = 0 to 1 {
// CHECK:         affine.for %[[Y:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[X:.*]] = 0 to 8 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[Y]] - (%[[Y]] + 3) floordiv 4, %[[X]]]
func.func @main(%x: memref<4x8xf32>, %z: memref<4x33xf32>, %p: memref<4x10xf32>,
                %b: memref<4x64xf32>, %c: memref<4x8xf32>) {
  affine.for %y = 0 to 4 {
    affine.for %i = 0 to 10 {
      %v = affine.load %x[%y, %i - (%i + 1) floordiv 10 - (%i + 9) floordiv 10] : memref<4x8xf32>
      affine.store %v, %p[%y, %i] : memref<4x10xf32>
    }
  }
  affine.for %y = 0 to 4 {
    affine.for %i = 0 to 64 {
      %v = affine.load %z[%y, (%i + 1) floordiv 2] : memref<4x33xf32>
      affine.store %v, %b[%y, %i] : memref<4x64xf32>
    }
  }
  affine.for %y = 0 to 4 {
    affine.for %i = 0 to 8 {
      %v = affine.load %x[%y - (%y + 3) floordiv 4, %i] : memref<4x8xf32>
      affine.store %v, %c[%y, %i] : memref<4x8xf32>
    }
  }
  return
}
