// PASSES: update-in-place
//
// Each element of %x is read for the last time where that of %y is stored: %y is %x from there on.
// %w cannot be %y, as neighbours of its elements are read.

// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = memref.alloc() : memref<8xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[X]][%[[I]]]
// CHECK:         affine.for %[[J:.*]] = 0 to 8 {
// CHECK:           affine.load %[[X]][%[[J]]]
// CHECK:           affine.load %arg0[-%[[J]] + 7]
// CHECK:           affine.store %{{.*}}, %[[X]][%[[J]]]
// CHECK:         %[[W:.*]] = memref.alloc() : memref<8xf32>
// CHECK:         affine.for %[[K:.*]] = 0 to 8 {
// CHECK:           affine.load %[[X]][%[[K]]]
// CHECK:           affine.load %[[X]][-%[[K]] + 7]
// CHECK:           affine.store %{{.*}}, %[[W]][%[[K]]]
// CHECK:         affine.load %[[W]][%{{.*}}]
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {
  %x = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    affine.store %1, %x[%i] : memref<8xf32>
  }
  %y = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    %1 = affine.load %a[7 - %i] : memref<8xf32>
    %2 = arith.addf %0, %1 : f32
    affine.store %2, %y[%i] : memref<8xf32>
  }
  %w = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %y[%i] : memref<8xf32>
    %1 = affine.load %y[7 - %i] : memref<8xf32>
    %2 = arith.addf %0, %1 : f32
    affine.store %2, %w[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %0 = affine.load %w[%i] : memref<8xf32>
    affine.store %0, %b[%i] : memref<8xf32>
  }
  return
}
