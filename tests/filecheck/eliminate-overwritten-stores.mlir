// PASSES: normalize-nests,eliminate-overwritten-stores
//
// Of the fill only the border is left: first and last row, then the columns.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[J:.*]] = 0 to 2050 {
// CHECK:           affine.store %cst{{.*}}, %arg1[0, %[[J]]]
// CHECK:         affine.for %[[J:.*]] = 0 to 2050 {
// CHECK:           affine.store %cst{{.*}}, %arg1[2049, %[[J]]]
// CHECK:         affine.for %[[I:.*]] = 0 to 2048 {
// CHECK:           affine.store %cst{{.*}}, %arg1[%[[I]] + 1, 0]
// CHECK:         affine.for %[[I:.*]] = 0 to 2048 {
// CHECK:           affine.store %cst{{.*}}, %arg1[%[[I]] + 1, 2049]
// CHECK:           affine.load %arg0
//
// What is read before it is overwritten stays, and so does what costs less than another nest.
//
// CHECK:         affine.for %{{.*}} = 0 to 4096 {
// CHECK-NEXT:      %cst
// CHECK-NEXT:      affine.store %cst{{.*}}, %arg2
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:      %cst
// CHECK-NEXT:      affine.store %cst{{.*}}, %arg4
#x = {role = "input", name = "x", dtype = "float32", shape = array<i64: 2048, 2048>, strides = array<i64: 2048, 1>, constant = false, updates = -1 : i64}
#out = {role = "output", name = "out", dtype = "float32", shape = array<i64: 2050, 2050>, strides = array<i64: 2050, 1>, constant = false, updates = -1 : i64}
#b = {role = "output", name = "b", dtype = "float32", shape = array<i64: 4096>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
#c = {role = "output", name = "c", dtype = "float32", shape = array<i64: 4096>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
#tiny = {role = "output", name = "tiny", dtype = "float32", shape = array<i64: 8>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
func.func @main(%x: memref<2048x2048xf32> {polyblocks.arg = #x},
                %out: memref<2050x2050xf32> {polyblocks.arg = #out},
                %b: memref<4096xf32> {polyblocks.arg = #b},
                %c: memref<4096xf32> {polyblocks.arg = #c},
                %tiny: memref<8xf32> {polyblocks.arg = #tiny}) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 2050 {
    affine.for %j = 0 to 2050 {
      affine.store %zero, %out[%i, %j] : memref<2050x2050xf32>
    }
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %a = affine.load %x[%i, %j] : memref<2048x2048xf32>
      affine.store %a, %out[%i + 1, %j + 1] : memref<2050x2050xf32>
    }
  }
  affine.for %i = 0 to 4096 {
    affine.store %zero, %b[%i] : memref<4096xf32>
  }
  affine.for %i = 0 to 4096 {
    %a = affine.load %b[4095 - %i] : memref<4096xf32>
    affine.store %a, %c[%i] : memref<4096xf32>
  }
  affine.for %i = 0 to 4096 {
    affine.store %one, %b[%i] : memref<4096xf32>
  }
  affine.for %i = 0 to 8 {
    affine.store %zero, %tiny[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 2 {
    affine.store %one, %tiny[%i + 3] : memref<8xf32>
  }
  func.return
}
