// PASSES: chain-products
// TARGET: chaining gpu
//
// One row of a head meets many steps: blocks of the grid share these out. A part leaves its largest
// score, its sum and its totals, and a second nest joins the parts in their order, each rescaled to
// the largest score of all.

// CHECK-LABEL: func.func @main
// CHECK:         %[[TOTALS:.*]] = memref.alloc() : memref<[[PARTS:[0-9]+]]x4x64xf32>
// CHECK-NEXT:    %[[SUMS:.*]] = memref.alloc() : memref<[[PARTS]]x4xf32>
// CHECK-NEXT:    %[[MAXIMA:.*]] = memref.alloc() : memref<[[PARTS]]x4xf32>
// CHECK:         affine.for %[[P:.*]] = 0 to [[PARTS]] {
// CHECK-NEXT:      affine.for %[[H:.*]] = 0 to 4 {
// CHECK:             %[[R:.*]]:2 = affine.for %[[T:.*]] = #{{.*}}(%[[P]]) to #{{.*}}(%[[P]]) iter_args
// CHECK-DAG:         affine.store %[[R]]#0, %[[MAXIMA]][%[[P]], %[[H]]]
// CHECK-DAG:         affine.store %[[R]]#1, %[[SUMS]][%[[P]], %[[H]]]
// CHECK:             affine.for %[[D:.*]] = 0 to 64 {
// CHECK-NEXT:          affine.load
// CHECK-NEXT:          affine.store %{{.*}}, %[[TOTALS]][%[[P]], %[[H]], %[[D]]]
// CHECK:         chained = true
// CHECK:         affine.for %[[H:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[D:.*]] = 0 to 64 {
// CHECK:             %[[MOST:.*]] = affine.for %{{.*}} = 0 to [[PARTS]] iter_args
// CHECK:               arith.maximumf
// CHECK:             affine.for %[[P:.*]] = 0 to [[PARTS]] iter_args
// CHECK:               arith.subf %{{.*}}, %{{.*}}
// CHECK:               math.exp
// CHECK:               affine.load %[[SUMS]][%[[P]], %[[H]]]
// CHECK-NEXT:          arith.mulf
// CHECK-NEXT:          arith.addf
// CHECK-NEXT:          affine.load %[[TOTALS]][%[[P]], %[[H]], %[[D]]]
// CHECK-NEXT:          arith.mulf
// CHECK-NEXT:          arith.addf
// CHECK:             arith.divf
// CHECK:             affine.store %{{.*}}, %arg3[%[[H]], 0, %[[D]]]
func.func @main(%q: memref<4x1x64xf16>, %k: memref<4x32768x64xf16>, %v: memref<4x32768x64xf16>, %out: memref<4x1x64xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<4x32768xf32>
  %max = memref.alloc() : memref<4xf32>
  %sum = memref.alloc() : memref<4xf32>
  %parts = memref.alloc() : memref<4x32768xf16>
  affine.for %h = 0 to 4 {
    affine.for %j = 0 to 32768 {
      %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %q[%h, 0, %d] : memref<4x1x64xf16>
        %b = affine.load %k[%h, %j, %d] : memref<4x32768x64xf16>
        %x = arith.extf %a : f16 to f32
        %y = arith.extf %b : f16 to f32
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %scores[%h, %j] : memref<4x32768xf32>
    }
  } {polyblocks.kernel = "scores", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 4 {
    %m = affine.for %j = 0 to 32768 iter_args(%a = %low) -> (f32) {
      %x = affine.load %scores[%h, %j] : memref<4x32768xf32>
      %n = arith.maximumf %a, %x : f32
      affine.yield %n : f32
    }
    affine.store %m, %max[%h] : memref<4xf32>
  } {polyblocks.kernel = "max", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 4 {
    affine.for %j = 0 to 32768 {
      %x = affine.load %scores[%h, %j] : memref<4x32768xf32>
      %m = affine.load %max[%h] : memref<4xf32>
      %e = arith.subf %x, %m fastmath<reassoc,contract> : f32
      %p = math.exp %e : f32
      %o = arith.truncf %p : f32 to f16
      affine.store %o, %parts[%h, %j] : memref<4x32768xf16>
    }
  } {polyblocks.kernel = "exp", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %h = 0 to 4 {
    %s = affine.for %j = 0 to 32768 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %scores[%h, %j] : memref<4x32768xf32>
      %m = affine.load %max[%h] : memref<4xf32>
      %e = arith.subf %x, %m fastmath<reassoc,contract> : f32
      %p = math.exp %e : f32
      %n = arith.addf %a, %p fastmath<reassoc,contract> : f32
      affine.yield %n : f32
    }
    affine.store %s, %sum[%h] : memref<4xf32>
  } {polyblocks.kernel = "sum", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 4 {
    affine.for %d = 0 to 64 {
      %r = affine.for %j = 0 to 32768 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %parts[%h, %j] : memref<4x32768xf16>
        %b = affine.load %v[%h, %j, %d] : memref<4x32768x64xf16>
        %x = arith.extf %a : f16 to f32
        %y = arith.extf %b : f16 to f32
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      %l = affine.load %sum[%h] : memref<4xf32>
      %o = arith.divf %r, %l fastmath<reassoc,contract> : f32
      affine.store %o, %out[%h, 0, %d] : memref<4x1x64xf32>
    }
  } {polyblocks.kernel = "results", polyblocks.kind = "reduction", polyblocks.sources = []}
  return
}
