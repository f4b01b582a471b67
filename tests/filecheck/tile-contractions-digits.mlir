// PASSES: tile-contractions
// ARCH: x86-64-v4
//
// One number counts the rows of a product whose operand has two dimensions of them, with another
// one between: the copy into a panel has a loop for each, so that its vectors are rows of memory.

// CHECK-DAG:   #[[FROM:.*]] = affine_map<()[s0, s1, s2] -> (s1, s0, s2)>
// CHECK-DAG:   #[[TO:.*]] = affine_map<()[s0, s1, s2] -> (0, s0, s2 + s1 * 14)>
// CHECK-LABEL: func.func @main
// CHECK:         "polyblocks.copy"(%arg0, %{{.*}}) {from = #[[FROM]], kind = "pack", shape = array<i64: 384, 14, 14>, to = #[[TO]]} : (memref<14x384x14xf32>, memref<1x384x208xf32>)
module {
  func.func @main(%a: memref<14x384x14xf32>, %b: memref<384x640xf32>, %c: memref<196x640xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 196 {
      affine.for %j = 0 to 640 {
        %r = affine.for %k = 0 to 384 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i floordiv 14, %k, %i mod 14] : memref<14x384x14xf32>
          %y = affine.load %b[%k, %j] : memref<384x640xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<196x640xf32>
      }
    } {polyblocks.schedule = {
         register_tile = [14, 32], block_tile = [196, 64], k_block = 384, sum_chunk = 384,
         chunks = [1, 1], packed = [true, true], threads = 1, transposed = false}}
    return
  }
}
