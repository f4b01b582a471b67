// PASSES: chain-products,choose-kernels,emit-kernels
// TARGET: amdgpu
// ARCH: gfx1100
//
// Both halves of a warp need all steps of an operand here, and have half of the sums each; a lane has
// sums of one row where the unit's columns are the rows of the program. So the unit takes the second
// operand first, and halves exchange what a row has in common and words of exponentials. Operands
// come through registers: the next block's first one while the second product is computed.

// CHECK-LABEL: gpu.func
// CHECK-SAME:    workgroup(%[[ROWS:.*]] : memref<1x{{.*}}x64xf16, {{.*}}>, %[[STEPS:.*]] : memref<1x{{.*}}x64xf16, {{.*}}>, %[[COLUMNS:.*]] : memref<1x64x{{.*}}xf16, {{[^>]*}}>>)
// CHECK:         scf.for
// CHECK:           vector.store {{.*}}, %[[STEPS]]
// CHECK:           gpu.barrier
// CHECK:           vector.load %{{.*}} : memref<1024000xf16
// CHECK:           llvm.call_intrinsic "llvm.amdgcn.sched.barrier"
// The only row of the lane is the second operand of all calls.
// CHECK:           llvm.call_intrinsic "llvm.amdgcn.wmma.f32.16x16x16.f16"(%{{.*}}, %[[ROW:.*]], %{{.*}})
// CHECK:           llvm.call_intrinsic "llvm.amdgcn.wmma.f32.16x16x16.f16"(%{{.*}}, %[[ROW]], %{{.*}})
// CHECK:           vector.store {{.*}}, %[[COLUMNS]]
// CHECK:           gpu.barrier
// CHECK:           vector.load %{{.*}} : memref<1024000xf16
// CHECK:           llvm.call_intrinsic "llvm.amdgcn.sched.barrier"
// CHECK-NOT:       gpu.shuffle
// CHECK:           arith.maximumf
// CHECK:           gpu.shuffle xor %{{.*}}, %c16_i32, %c32_i32 : f32
// CHECK-NEXT:      arith.maximumf
// CHECK-NOT:       gpu.shuffle
// CHECK:           llvm.call_intrinsic "llvm.amdgcn.exp2.f32"
// CHECK:           gpu.shuffle xor %{{.*}}, %c16_i32, %c32_i32 : f32
// CHECK-NEXT:      arith.addf
// CHECK:           %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[OWN:.*]], %c16_i32, %c32_i32 : i32
// CHECK-NEXT:      %[[LOW:.*]] = arith.select %[[HIGH_HALF:.*]], %[[OTHER]], %[[OWN]] : i32
// CHECK-NEXT:      %[[HIGH:.*]] = arith.select %[[HIGH_HALF]], %[[OWN]], %[[OTHER]] : i32
// CHECK:           %[[WORDS:.*]] = vector.from_elements %{{.*}} : vector<8xi32>
// CHECK-NEXT:      %[[PARTS:.*]] = vector.bitcast %[[WORDS]] : vector<8xi32> to vector<16xf16>
// CHECK:           llvm.call_intrinsic "llvm.amdgcn.wmma.f32.16x16x16.f16"(%{{.*}}, %[[PARTS]], %{{.*}})
// CHECK:           scf.yield
// CHECK:         vector.store {{.*}} : memref<16x1000x64xf16>, vector<4xf16>
func.func @main(%q: memref<16x1000x64xf16>, %k: memref<16x1000x64xf16>, %v: memref<16x1000x64xf16>, %out: memref<16x1000x64xf16>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<16x1000x1000xf32>
  %max = memref.alloc() : memref<16x1000xf32>
  %exp = memref.alloc() : memref<16x1000x1000xf32>
  %sum = memref.alloc() : memref<16x1000xf32>
  %parts = memref.alloc() : memref<16x1000x1000xf16>
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %q[%h, %i, %d] : memref<16x1000x64xf16>
          %b = affine.load %k[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %scores[%h, %i, %j] : memref<16x1000x1000xf32>
      }
    }
  } {polyblocks.kernel = "scores", polyblocks.kind = "contraction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      %m = affine.for %j = 0 to 1000 iter_args(%a = %low) -> (f32) {
        %x = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf32>
        %n = arith.maximumf %a, %x : f32
        affine.yield %n : f32
      }
      affine.store %m, %max[%h, %i] : memref<16x1000xf32>
    }
  } {polyblocks.kernel = "max", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %x = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf32>
        %m = affine.load %max[%h, %i] : memref<16x1000xf32>
        %e = arith.subf %x, %m fastmath<reassoc,contract> : f32
        %p = math.exp %e : f32
        affine.store %p, %exp[%h, %i, %j] : memref<16x1000x1000xf32>
      }
    }
  } {polyblocks.kernel = "exp", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      %s = affine.for %j = 0 to 1000 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %exp[%h, %i, %j] : memref<16x1000x1000xf32>
        %n = arith.addf %a, %x fastmath<reassoc,contract> : f32
        affine.yield %n : f32
      }
      affine.store %s, %sum[%h, %i] : memref<16x1000xf32>
    }
  } {polyblocks.kernel = "sum", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %x = affine.load %exp[%h, %i, %j] : memref<16x1000x1000xf32>
        %s = affine.load %sum[%h, %i] : memref<16x1000xf32>
        %o = arith.divf %x, %s fastmath<reassoc,contract> : f32
        %p = arith.truncf %o : f32 to f16
        affine.store %p, %parts[%h, %i, %j] : memref<16x1000x1000xf16>
      }
    }
  } {polyblocks.kernel = "parts", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %d = 0 to 64 {
        %r = affine.for %j = 0 to 1000 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %parts[%h, %i, %j] : memref<16x1000x1000xf16>
          %b = affine.load %v[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %o = arith.truncf %r : f32 to f16
        affine.store %o, %out[%h, %i, %d] : memref<16x1000x64xf16>
      }
    }
  } {polyblocks.kernel = "results", polyblocks.kind = "contraction", polyblocks.sources = []}
  return
}
