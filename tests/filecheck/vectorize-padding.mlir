// PASSES: vectorize-nests
// ARCH: znver4
//
// Numbers of paddings have served their purpose: margins of equal arrays are filled by equal code.

// CHECK-LABEL: func.func @main
// CHECK:         affine.store %{{.*}}[%{{.*}}, 0] : memref<8x9xf32>
func.func @main(
    %b: memref<8x9xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "b", role = "output", shape = array<i64: 8, 9>, strides = array<i64: 9, 1>, updates = -1 : i64}}) {
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %b[%i, 0] {polyblocks.padding = array<i64: 3>} : memref<8x9xf32>
  }
  return
}
