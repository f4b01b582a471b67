// PASSES: normalize-nests,forward-copies
//
// The parts are made in their place of the output.

// CHECK-LABEL: @main
// CHECK:           arith.mulf
// CHECK-NEXT:      affine.store %{{.*}}, %arg2[%{{.*}}] : memref<24xf32>
// CHECK:           %[[Y:.*]] = affine.load %arg1
// CHECK-NEXT:      affine.store %[[Y]], %arg2[%{{.*}} + 8] : memref<24xf32>
// CHECK-NOT:     affine.load %alloc
// CHECK:         return
#x = {role = "input", name = "x", dtype = "float32", shape = array<i64: 8>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
#y = {role = "input", name = "y", dtype = "float32", shape = array<i64: 16>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
#out = {role = "output", name = "out", dtype = "float32", shape = array<i64: 24>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
func.func @main(%x: memref<8xf32> {polyblocks.arg = #x}, %y: memref<16xf32> {polyblocks.arg = #y},
                %out: memref<24xf32> {polyblocks.arg = #out}) {
  %part = memref.alloc() : memref<8xf32>
  %whole = memref.alloc() : memref<24xf32>
  affine.for %i = 0 to 8 {
    %a = affine.load %x[%i] : memref<8xf32>
    %b = arith.mulf %a, %a : f32
    affine.store %b, %part[%i] : memref<8xf32>
  }
  %first = memref.subview %whole[0] [8] [1] : memref<24xf32> to memref<8xf32, strided<[1]>>
  %second = memref.subview %whole[8] [16] [1] : memref<24xf32> to memref<16xf32, strided<[1], offset: 8>>
  memref.copy %part, %first : memref<8xf32> to memref<8xf32, strided<[1]>>
  // Once more, which is nothing then.
  memref.copy %part, %first : memref<8xf32> to memref<8xf32, strided<[1]>>
  memref.copy %y, %second : memref<16xf32> to memref<16xf32, strided<[1], offset: 8>>
  memref.copy %whole, %out : memref<24xf32> to memref<24xf32>
  func.return
}
