// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// Two loops of which each block runs one: the threads wait before both, not in the first one.

// CHECK:       gpu.func @kernel
// CHECK-SAME:    workgroup(%[[L:[^ ]*]] :
// CHECK:         memref.store {{.*}}, %[[L]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK-NOT:     gpu.barrier
// CHECK:           memref.load %[[L]]
// CHECK-NOT:     gpu.barrier
// CHECK:         scf.for
// CHECK-NOT:     gpu.barrier
// CHECK:           memref.load %[[L]]
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.return
func.func @main(%a: memref<64x32xf32>, %b: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %t = 0 to 64 {
    %l = memref.alloca() : memref<32xf32>
    affine.for %j = 0 to 32 {
      %x = affine.load %a[%t, %j] : memref<64x32xf32>
      affine.store %x, %l[%j] : memref<32xf32>
    }
    affine.for %u = 0 to min affine_map<(d0) -> (1, -d0 + 32)>(%t) {
      %s = affine.for %j = 0 to 31 iter_args(%r = %zero) -> (f32) {
        %x = affine.load %l[%j + 1] : memref<32xf32>
        %y = affine.load %l[%j] : memref<32xf32>
        %d = arith.subf %x, %y : f32
        %n = arith.addf %d, %r fastmath<reassoc> : f32
        affine.yield %n : f32
      }
      affine.store %s, %b[%t] : memref<64xf32>
    }
    affine.for %u = 0 to min affine_map<(d0) -> (1, d0 - 31)>(%t) {
      %s = affine.for %j = 0 to 30 iter_args(%r = %zero) -> (f32) {
        %x = affine.load %l[%j + 2] : memref<32xf32>
        %y = affine.load %l[%j] : memref<32xf32>
        %d = arith.subf %x, %y : f32
        %n = arith.addf %d, %r fastmath<reassoc> : f32
        affine.yield %n : f32
      }
      affine.store %s, %b[%t] : memref<64xf32>
    }
  }
  return
}
