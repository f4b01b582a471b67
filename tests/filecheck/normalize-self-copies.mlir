// PASSES: normalize-nests
//
// What was made in its place is not copied there.

// CHECK-LABEL: @main
// CHECK:         arith.mulf
// CHECK:         affine.store
// CHECK-NOT:     affine.load
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @main(%x: memref<8xf32>, %out: memref<24xf32>) {
  %part = memref.subview %out[8] [8] [1] : memref<24xf32> to memref<8xf32, strided<[1], offset: 8>>
  affine.for %i = 0 to 8 {
    %a = affine.load %x[%i] : memref<8xf32>
    %b = arith.mulf %a, %a : f32
    affine.store %b, %part[%i] : memref<8xf32, strided<[1], offset: 8>>
  }
  memref.copy %part, %part : memref<8xf32, strided<[1], offset: 8>> to memref<8xf32, strided<[1], offset: 8>>
  func.return
}
