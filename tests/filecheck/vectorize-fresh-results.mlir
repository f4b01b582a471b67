// PASSES: vectorize-nests
// ARCH: znver4
//
// Results that lie in other memory at each call drive each other out of the last cache of 32 MiB: an
// output of 16 is stored past it, though another 16 are all that is read.

// CHECK-LABEL: func.func @main
// CHECK:           vector.store %{{.*}} {alignment = 64 : i64, nontemporal = true}
module attributes {polyblocks.fresh_results} {
  func.func @main(
      %a: memref<4096x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "a", role = "input", shape = array<i64: 4096, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}},
      %b: memref<4096x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "b", role = "output", shape = array<i64: 4096, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}}) {
    affine.for %i = 0 to 4096 {
      affine.for %j = 0 to 1024 {
        %x = affine.load %a[%i, %j] : memref<4096x1024xf32>
        affine.store %x, %b[%i, %j] : memref<4096x1024xf32>
      }
    }
    return
  }
}
