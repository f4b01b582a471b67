// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A product by a matrix unit. A block copies tiles of both operands to a stage of shared memory, 16
// bytes at a time, swizzled. In the loop the next tiles are loaded first; each call's operands are
// read before the call ahead of it multiplies. Sums stay in the unit's registers. At the end they
// change places through the operands' memory, are rounded, and stored 16 bytes at a time.

// CHECK:       gpu.func @kernel
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<2x64x64xf16, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<2x128x64xf16, #gpu.address_space<workgroup>>)
// CHECK-DAG:     %[[C0:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [524288], strides: [1]
// CHECK-DAG:     %[[C1:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [524288], strides: [1]
// CHECK-DAG:     %[[C2:.*]] = memref.reinterpret_cast %arg2 to offset: [0], sizes: [1048576], strides: [1]
// CHECK:         vector.load %[[C0]][{{.*}}] : memref<524288xf16, strided<[1]>>, vector<8xf16>
// CHECK:         vector.load %[[C1]][{{.*}}] : memref<524288xf16, strided<[1]>>, vector<8xf16>
// CHECK:         arith.xori
// CHECK-NEXT:    vector.store {{.*}}, %[[A]]
// CHECK:         vector.store {{.*}}, %[[B]]
// CHECK:         gpu.barrier
// CHECK:         vector.load %[[A]]
// CHECK:         vector.load %[[B]]
// CHECK:         scf.for
// CHECK-SAME:      iter_args
// CHECK-NOT:       gpu.barrier
// CHECK:           vector.load %[[C0]]
// CHECK:           vector.load %[[A]]
// CHECK:           vector.load %[[B]]
// CHECK:           llvm.call_intrinsic "llvm.imaginary.multiply"({{.*}}) : (vector<8xf16>, vector<8xf16>, vector<8xf32>) -> vector<8xf32>
// CHECK:           vector.store {{.*}}, %[[A]]
// CHECK:           gpu.barrier
// CHECK:           vector.load %[[A]]
// CHECK:           llvm.call_intrinsic "llvm.imaginary.multiply"
// CHECK:           scf.yield
// CHECK-NOT:     gpu.barrier
// CHECK:         llvm.call_intrinsic "llvm.imaginary.multiply"
// CHECK:         gpu.barrier
// CHECK:         vector.bitcast {{.*}} : vector<1xf32> to vector<2xf16>
// CHECK:         vector.store
// CHECK:         gpu.barrier
// CHECK:         vector.load {{.*}} vector<8xf16>
// CHECK:         vector.bitcast {{.*}} : vector<8xf16> to vector<4xf32>
// CHECK:         arith.truncf
// CHECK:         vector.store {{.*}}, %[[C2]][{{.*}}] : memref<1048576xf16, strided<[1]>>, vector<8xf16>
// CHECK:         gpu.return
func.func @main(%a: memref<1024x512xf16>, %b: memref<1024x512xf16>, %c: memref<1024x1024xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 1024 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<1024x512xf16>
        %y = affine.load %b[%j, %k] : memref<1024x512xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<1024x1024xf16>
    }
  }
  return
}
