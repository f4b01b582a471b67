// PASSES: store-booleans-as-bytes
//
// Memory of i1 becomes memory of bytes; i1 as a value, and other memrefs, stay.

// CHECK:       memref.global "private" constant @mask : memref<4xi8> = dense<[1, 0, 0, 1]>
// CHECK:       memref.global "private" constant @all : memref<4xi8> = dense<1>
memref.global "private" constant @mask : memref<4xi1> = dense<[true, false, false, true]>
memref.global "private" constant @all : memref<4xi1> = dense<true>

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<4xi8, strided<[2]>>, %[[F:.*]]: memref<4xf32>, %[[WS:.*]]: memref<64xi8>)
// CHECK:         memref.view %[[WS]][%{{.*}}][] : memref<64xi8> to memref<4xi8>
// CHECK:         %[[B:.*]] = affine.load %[[X]][%{{.*}} * 2] : memref<4xi8, strided<[2]>>
// CHECK:         %[[P:.*]] = arith.cmpi ne, %[[B]], %{{.*}} : i8
// CHECK:         %[[N:.*]] = arith.xori %[[P]], %{{.*}} : i1
// CHECK:         %[[W:.*]] = arith.extui %[[N]] : i1 to i8
// CHECK:         memref.store %[[W]], %{{.*}} : memref<4xi8>
// CHECK:         affine.store %{{.*}}, %[[F]][0] : memref<4xf32>
func.func @main(%x: memref<4xi1, strided<[2]>>, %f: memref<4xf32>, %ws: memref<64xi8>) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %one = arith.constant 1.0 : f32
  %v = memref.view %ws[%c0][] : memref<64xi8> to memref<4xi1>
  affine.for %i = 0 to 2 {
    %0 = affine.load %x[%i * 2] : memref<4xi1, strided<[2]>>
    %1 = arith.xori %0, %true : i1
    memref.store %1, %v[%i] : memref<4xi1>
  }
  affine.store %one, %f[0] : memref<4xf32>
  return
}
