// PASSES: stage-operands,emit-kernels
// TARGET: gpu
//
// Eight neighbouring columns are the lanes of a quarter of a warp: four lanes have parts of one, which they
// join by shuffles, then eight warps through shared memory, from which each lane takes two parts.

// CHECK:       gpu.func @columns({{.*}}) workgroup(%[[S:.*]] : memref<64xf32, #gpu.address_space<workgroup>>) kernel
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 8, 1, 1>
// CHECK:         %[[PART:.*]] = scf.for
// CHECK:         gpu.shuffle xor %{{.*}}, %c8_i32
// CHECK:         gpu.shuffle xor %{{.*}}, %c16_i32
// CHECK-NOT:     gpu.shuffle
// CHECK:         memref.store %{{.*}}, %[[S]]
// CHECK:         gpu.barrier
// CHECK-COUNT-2: memref.load %[[S]]
// CHECK:         gpu.shuffle xor %{{.*}}, %c8_i32
// CHECK:         gpu.shuffle xor %{{.*}}, %c16_i32
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.return
func.func @main(%a: memref<500x64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %zero = arith.constant 0.0 : f32
    %s = affine.for %j = 0 to 500 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[%j, %i] : memref<500x64xf32>
      %y = arith.addf %x, %t fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    affine.store %s, %b[%i] : memref<64xf32>
  } {polyblocks.schedule = {
       kernel = "columns", resident = 1, group = 32, groups = 8, strided = true, width = 1}}
  return
}
