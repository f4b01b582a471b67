// PASSES: split-ranges
//
// Two halves that are written and read by themselves are two buffers.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<8x4xf32>
// CHECK-DAG:     %[[FIRST:.*]] = memref.alloc(){{.*}} : memref<8x4xf32>
// CHECK-DAG:     %[[SECOND:.*]] = memref.alloc(){{.*}} : memref<7x4xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[FIRST]][%[[I]], %{{.*}}] : memref<8x4xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 7 {
// CHECK:           affine.store %{{.*}}, %[[SECOND]][%[[I]], %{{.*}}] : memref<7x4xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 7 {
// CHECK:           affine.load %[[FIRST]][%[[I]] + 1, %{{.*}}]
// CHECK:           affine.load %[[SECOND]][%[[I]], %{{.*}}]
//
// One that is read across the border stays one.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[WHOLE:.*]][%[[I]], %{{.*}}] : memref<16x4xf32>
// CHECK:           affine.store %{{.*}}, %[[WHOLE]][%[[I]] + 8, %{{.*}}] : memref<16x4xf32>
// CHECK:           affine.load %[[WHOLE]][%{{.*}} + 4, %{{.*}}] : memref<16x4xf32>
func.func @main(%a: memref<8x4xf32>, %b: memref<7x4xf32>, %c: memref<8x4xf32>) {
  %halves = memref.alloc() : memref<16x4xf32>
  %whole = memref.alloc() : memref<16x4xf32>
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 4 {
      %x = affine.load %a[%i, %j] : memref<8x4xf32>
      affine.store %x, %halves[%i, %j] : memref<16x4xf32>
    }
  }
  affine.for %i = 0 to 7 {
    affine.for %j = 0 to 4 {
      %x = affine.load %a[%i + 1, %j] : memref<8x4xf32>
      affine.store %x, %halves[%i + 9, %j] : memref<16x4xf32>
    }
  }
  affine.for %i = 0 to 7 {
    affine.for %j = 0 to 4 {
      %x = affine.load %halves[%i + 1, %j] : memref<16x4xf32>
      %y = affine.load %halves[%i + 9, %j] : memref<16x4xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %b[%i, %j] : memref<7x4xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 4 {
      %x = affine.load %a[%i, %j] : memref<8x4xf32>
      affine.store %x, %whole[%i, %j] : memref<16x4xf32>
      affine.store %x, %whole[%i + 8, %j] : memref<16x4xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 4 {
      %x = affine.load %whole[%i + 4, %j] : memref<16x4xf32>
      affine.store %x, %c[%i, %j] : memref<8x4xf32>
    }
  }
  return
}
