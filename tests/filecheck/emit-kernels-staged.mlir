// PASSES: stage-operands,emit-kernels
// TARGET: copying gpu
//
// A product whose copies are nodes. All of a stage's copies are one group; while products go on with
// operands in registers, copies begin, 16 bytes each, and the next operands are read. Then a thread
// waits until one group is on its way, and for the others.

// CHECK:       gpu.func @product
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<3x32x32xf16, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<3x64x32xf16, #gpu.address_space<workgroup>>)
// CHECK-COUNT-3: "llvm.imaginary.copy.close"
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-NEXT:    llvm.call_intrinsic "llvm.imaginary.copy.wait"(%[[TWO]])
// CHECK-NEXT:    gpu.barrier
// CHECK:         vector.load %[[A]]
// CHECK:         vector.load %[[B]]
// CHECK:         scf.for
// CHECK:           vector.load %[[A]]
// CHECK:           "llvm.imaginary.multiply"
// CHECK:           "llvm.imaginary.copy.start"
// CHECK:           "llvm.imaginary.multiply"
// CHECK:           "llvm.imaginary.copy.start"
// CHECK:           vector.load %[[B]]
// CHECK:           "llvm.imaginary.multiply"
// CHECK:           "llvm.imaginary.copy.start"
// CHECK:           "llvm.imaginary.copy.close"
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT:      llvm.call_intrinsic "llvm.imaginary.copy.wait"(%[[ONE]])
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.yield
// CHECK-NOT:     "llvm.imaginary.copy.start"
// CHECK:         "llvm.imaginary.multiply"
// CHECK:         gpu.return
module {
  func.func @main(%a: memref<512x512xf16>, %b: memref<256x512xf16>, %c: memref<512x256xf16>,
                  %d: memref<512x256xf32>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 512 {
      affine.for %j = 0 to 256 {
        %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<512x512xf16>
          %y = affine.load %b[%j, %k] : memref<256x512xf16>
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        affine.store %s, %d[%i, %j] : memref<512x256xf32>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, unit = "unit", register_tile = [16, 32],
         block_tile = [32, 64], k_block = 32, stages = 3}}
    affine.for %i = 0 to 512 {
      affine.for %j = 0 to 256 {
        %x = affine.load %d[%i, %j] : memref<512x256xf32>
        %h = arith.truncf %x : f32 to f16
        affine.store %h, %c[%i, %j] : memref<512x256xf16>
      }
    } {polyblocks.schedule = {kernel = "round", resident = 1, group = 1, groups = 128}}
    return
  }
}
