// PASSES: rename-buffers
//
// The middle of %b is overwritten after %b was read: what was before gets a buffer of its own.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[OLD:.*]] = memref.alloc() : memref<100xf32>
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %[[OLD]]
// CHECK:         affine.for
// CHECK:           affine.load %[[OLD]]
// CHECK:           affine.store %{{.*}}, %arg1
// CHECK:         affine.for %[[I:.*]] = 0 to 100 {
// CHECK:           %[[X:.*]] = affine.load %[[OLD]][%[[I]]]
// CHECK:           affine.store %[[X]], %[[NEW:.*]][%[[I]]]
// CHECK:         affine.for %[[J:.*]] = 0 to 98 {
// CHECK:           affine.store %{{.*}}, %[[NEW]][%[[J]] + 1]
// CHECK:         affine.for
// CHECK:           affine.load %[[NEW]]
// CHECK:           affine.store %{{.*}}, %arg2
func.func @main(%a: memref<100xf32>, %c: memref<100xf32>, %d: memref<100xf32>) {
  %b = memref.alloc() : memref<100xf32>
  affine.for %i = 0 to 100 {
    %x = affine.load %a[%i] : memref<100xf32>
    affine.store %x, %b[%i] : memref<100xf32>
  }
  affine.for %i = 0 to 100 {
    %x = affine.load %b[%i] : memref<100xf32>
    affine.store %x, %c[%i] : memref<100xf32>
  }
  affine.for %i = 0 to 98 {
    %x = affine.load %c[%i] : memref<100xf32>
    affine.store %x, %b[%i + 1] : memref<100xf32>
  }
  affine.for %i = 0 to 100 {
    %x = affine.load %b[%i] : memref<100xf32>
    affine.store %x, %d[%i] : memref<100xf32>
  }
  return
}
