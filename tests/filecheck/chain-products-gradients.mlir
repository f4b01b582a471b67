// PASSES: chain-products
// TARGET: chaining gpu
//
// Two products give the elements that two others multiply, one of them transposed. Each of these
// is a nest that computes both again, block by block; nothing is left of the matrices between.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc()
// Rows of the one are those of the first factor, whose numbers are of rows.
// CHECK:         affine.for %[[H:.*]] = 0 to 16 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 1000 {
// CHECK:             affine.for %[[T:.*]] = 0 to {{[0-9]+}} {
// CHECK:               affine.for %[[J:.*]] = {{.*}}(%[[T]]) to
// CHECK:                 affine.load %arg0[%[[H]], %[[I]], %{{.*}}]
// CHECK:                 affine.load %arg1[%[[H]], %[[J]], %{{.*}}]
// CHECK:                 affine.load %arg4[%[[H]], %[[I]]]
// CHECK-NOT:             math.exp
// CHECK:                 llvm.call_intrinsic "llvm.exp2.f32"
// CHECK:                 affine.store
// CHECK:               affine.for %[[J:.*]] = {{.*}}(%[[T]]) to
// CHECK:                 affine.load %arg2[%[[H]], %[[I]], %{{.*}}]
// CHECK:                 affine.load %arg3[%[[H]], %[[J]], %{{.*}}]
// CHECK:                 affine.store
// CHECK:               affine.for %{{.*}} = 0 to 64 {
// CHECK:             affine.store %{{.*}}, %arg5[%[[H]], %[[I]], %{{.*}}]
// CHECK:         polyblocks.schedule = {{.*}}chained = true
// Of the other, they are those of the second factor: numbers are of steps.
// CHECK:         affine.for %[[H:.*]] = 0 to 16 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 1000 {
// CHECK:             affine.for %[[T:.*]] = 0 to {{[0-9]+}} {
// CHECK:               affine.for %[[I:.*]] = {{.*}}(%[[T]]) to
// CHECK:                 affine.load %arg0[%[[H]], %[[I]], %{{.*}}]
// CHECK:                 affine.load %arg1[%[[H]], %[[J]], %{{.*}}]
// CHECK:                 affine.load %arg4[%[[H]], %[[I]]]
// CHECK:                 affine.store
// CHECK:             affine.store %{{.*}}, %arg6[%[[H]], %[[J]], %{{.*}}]
// CHECK:         polyblocks.schedule = {{.*}}chained = true
// CHECK-NOT:     affine.for
func.func @main(%q: memref<16x1000x64xf16>, %k: memref<16x1000x64xf16>, %g: memref<16x1000x64xf16>, %v: memref<16x1000x64xf16>, %l: memref<16x1000xf32>, %dq: memref<16x1000x64xf16>, %dk: memref<16x1000x64xf16>) {
  %zero = arith.constant 0.0 : f32
  %weights = memref.alloc() : memref<16x1000x1000xf32>
  %scores = memref.alloc() : memref<16x1000x1000xf16>
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
        %n = affine.load %l[%h, %i] : memref<16x1000xf32>
        %e = arith.subf %r, %n fastmath<reassoc,contract> : f32
        %w = math.exp %e : f32
        affine.store %w, %weights[%h, %i, %j] : memref<16x1000x1000xf32>
      }
    }
  }
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %g[%h, %i, %d] : memref<16x1000x64xf16>
          %b = affine.load %v[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %w = affine.load %weights[%h, %i, %j] : memref<16x1000x1000xf32>
        %e = arith.mulf %w, %r fastmath<reassoc,contract> : f32
        %f = arith.truncf %e : f32 to f16
        affine.store %f, %scores[%h, %i, %j] : memref<16x1000x1000xf16>
      }
    }
  }
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %d = 0 to 64 {
        %r = affine.for %j = 0 to 1000 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf16>
          %b = affine.load %k[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %f = arith.truncf %r : f32 to f16
        affine.store %f, %dq[%h, %i, %d] : memref<16x1000x64xf16>
      }
    }
  }
  affine.for %h = 0 to 16 {
    affine.for %j = 0 to 1000 {
      affine.for %d = 0 to 64 {
        %r = affine.for %i = 0 to 1000 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf16>
          %b = affine.load %q[%h, %i, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %f = arith.truncf %r : f32 to f16
        affine.store %f, %dk[%h, %j, %d] : memref<16x1000x64xf16>
      }
    }
  }
  return
}
