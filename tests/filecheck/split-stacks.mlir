// PASSES: split-stacks
//
// Each access names a part of the stack: its parts are arrays. One that counts through the parts
// needs them in one array, and so does what somebody else reads. Of a stack with one part that is
// accessed (%one) the others are gone.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[A:.*]] = memref.alloc() : memref<8xf32>
// CHECK-DAG:     %[[B:.*]] = memref.alloc() : memref<8xf32>
// CHECK-DAG:     %[[WHOLE:.*]] = memref.alloc() : memref<8x2xf32>
// CHECK-DAG:     %{{.*}} = memref.alloc() : memref<8xf64>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[FIRST:.*]][%[[I]]] : memref<8xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[SECOND:.*]][%[[I]]] : memref<8xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.load %[[FIRST]][%[[I]]]
// CHECK:           affine.load %[[SECOND]][%[[I]]]
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[WHOLE]][%[[I]], 0]
// CHECK:           affine.store %{{.*}}, %[[WHOLE]][%[[I]], 1]
// CHECK:           affine.load %[[WHOLE]][%{{.*}}, %{{.*}}]
// CHECK:         affine.store %{{.*}}, %[[ONE:.*]][%{{.*}}] : memref<8xf64>
// CHECK:         affine.load %[[ONE]][%{{.*}}] : memref<8xf64>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8x2xf32>, %d: memref<8xf64>) {
  %one = memref.alloc() : memref<3x8xf64>
  %stack = memref.alloc() : memref<8x2xf32>
  %whole = memref.alloc() : memref<8x2xf32>
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %stack[%i, 0] : memref<8x2xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    %y = arith.negf %x : f32
    affine.store %y, %stack[%i, 1] : memref<8x2xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %stack[%i, 0] : memref<8x2xf32>
    %y = affine.load %stack[%i, 1] : memref<8x2xf32>
    %z = arith.mulf %x, %y : f32
    affine.store %z, %b[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %whole[%i, 0] : memref<8x2xf32>
    affine.store %x, %whole[%i, 1] : memref<8x2xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 2 {
      %x = affine.load %whole[%i, %j] : memref<8x2xf32>
      affine.store %x, %c[%i, %j] : memref<8x2xf32>
    }
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %d[%i] : memref<8xf64>
    affine.store %x, %one[1, %i] : memref<3x8xf64>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %one[1, %i] : memref<3x8xf64>
    %y = arith.negf %x : f64
    affine.store %y, %d[%i] : memref<8xf64>
  }
  return
}
