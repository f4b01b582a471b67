// PASSES: select-layers
//
// One of four layers for each element of a row: all are loaded. Of a hundred layers one is, and so
// is one at a place that is known at run time in the row.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[X:.*]] = 0 to 640 {
// CHECK:           %[[A:.*]] = affine.load %{{.*}}[0, %[[X]]] : memref<4x640xf32>
// CHECK:           %[[B:.*]] = affine.load %{{.*}}[1, %[[X]]] : memref<4x640xf32>
// CHECK:           %[[C:.*]] = affine.load %{{.*}}[2, %[[X]]] : memref<4x640xf32>
// CHECK:           %[[D:.*]] = affine.load %{{.*}}[3, %[[X]]] : memref<4x640xf32>
// CHECK:           %[[ODD:.*]] = arith.cmpi ne
// CHECK:           %[[UPPER:.*]] = arith.cmpi ne
// CHECK:           %[[LOW:.*]] = arith.select %[[ODD]], %[[B]], %[[A]] : f32
// CHECK:           %[[HIGH:.*]] = arith.select %[[ODD]], %[[D]], %[[C]] : f32
// CHECK:           %[[V:.*]] = arith.select %[[UPPER]], %[[HIGH]], %[[LOW]] : f32
// CHECK:           affine.store %[[V]]
// CHECK:         affine.for %{{.*}} = 0 to 640 {
// CHECK-NOT:       arith.select
// CHECK:           memref.load %{{.*}} : memref<100x640xf32>
// CHECK:         affine.for %{{.*}} = 0 to 640 {
// CHECK-NOT:       arith.select
// CHECK:           memref.load %{{.*}} : memref<4x640xf32>
func.func @main(%a: memref<4x640xf32>, %h: memref<100x640xf32>, %n: memref<640xi32>,
                %b: memref<3x640xf32>) {
  affine.for %x = 0 to 640 {
    %i = affine.load %n[%x] : memref<640xi32>
    %k = arith.index_cast %i : i32 to index
    %v = memref.load %a[%k, %x] : memref<4x640xf32>
    affine.store %v, %b[0, %x] : memref<3x640xf32>
  }
  affine.for %x = 0 to 640 {
    %i = affine.load %n[%x] : memref<640xi32>
    %k = arith.index_cast %i : i32 to index
    %v = memref.load %h[%k, %x] : memref<100x640xf32>
    affine.store %v, %b[1, %x] : memref<3x640xf32>
  }
  affine.for %x = 0 to 640 {
    %i = affine.load %n[%x] : memref<640xi32>
    %k = arith.index_cast %i : i32 to index
    %c0 = arith.constant 0 : index
    %v = memref.load %a[%c0, %k] : memref<4x640xf32>
    affine.store %v, %b[2, %x] : memref<3x640xf32>
  }
  return
}
