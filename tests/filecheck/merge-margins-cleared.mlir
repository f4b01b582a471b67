// PASSES: merge-margins
//
// Zeros are stored over a part of a copy: it is no copy any more, and stays a buffer of its own.

// CHECK-LABEL: func.func @main
// CHECK:         affine.store %{{.*}}, %[[X:.*]][%{{.*}}] : memref<8xf32>
// CHECK:         affine.load %[[X]][
// CHECK-NEXT:    affine.store %{{.*}}, %[[P:.*]][%{{.*}}] : memref<8xf32>
// CHECK:         affine.store %{{.*}}, %[[P]][3]
// CHECK:         affine.load %[[X]][
// CHECK:         affine.load %[[P]][
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %x = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    affine.store %1, %x[%i] : memref<8xf32>
  }
  %p = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %p[%i] : memref<8xf32>
  }
  affine.store %zero, %p[3] : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    %1 = affine.load %p[%i] : memref<8xf32>
    %2 = arith.addf %0, %1 : f32
    affine.store %2, %b[%i] : memref<8xf32>
  }
  return
}
