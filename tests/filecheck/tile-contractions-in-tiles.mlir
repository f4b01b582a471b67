// PASSES: fuse-tiles,plan-contractions,tile-contractions
// ARCH: x86-64-v3
// OPTIONS: num_threads=2
//
// Columns of the first contraction, which all tiles of rows use, are copied into panels in front of
// the nest: two threads do not share seven heads evenly. Those of the second one are in order, and used in place; so are its rows, of the tile.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[K:[a-z0-9]+]]: memref<7x1024x64xf32>, %{{[a-z0-9]+}}: memref<7x1024x64xf32>, %{{[a-z0-9]+}}: memref<7x1024x64xf32>) {
// CHECK:         %[[PANELS:.*]] = memref.alloc() : memref<7x[[PANELS_OF:[0-9]+]]x64x[[LANES:[0-9]+]]xf32>
// CHECK:         affine.for %[[H:.*]] = 0 to 7 {
// CHECK-NEXT:      affine.for %[[P:.*]] = 0 to [[PANELS_OF]] {
// CHECK-NEXT:        affine.for %[[D:.*]] = 0 to 64 {
// CHECK-NEXT:          affine.for %[[L:.*]] = 0 to [[LANES]] {
// CHECK-NEXT:            affine.load %[[K]][%[[H]], %[[P]] * [[LANES]] + %[[L]], %[[D]]]
// CHECK-NEXT:            affine.store %{{.*}}, %[[PANELS]][%[[H]], %[[P]], %[[D]], %[[L]]]
// CHECK:         {polyblocks.kernel = "reduction_panel", polyblocks.kind = "copy"
// CHECK:         affine.for %[[G:.*]] = 0 to 7 {
// CHECK-NEXT:      affine.for %[[T:.*]] = 0 to {{[0-9]+}} {
// CHECK:             %[[EXP:.*]] = memref.alloca() {{.*}} : memref<{{[0-9][0-9][0-9][0-9]+}}xf32>
// CHECK:             affine.load %[[PANELS]][%[[G]],
// CHECK:             math.exp
// CHECK-NOT:         affine.load %[[EXP]][%{{.*}}, %{{.*}}]
// CHECK:             affine.load %{{.*}} : memref<458752xf32>
// CHECK-NEXT:        affine.load %[[EXP]][
func.func @main(%q: memref<7x1024x64xf32>, %k: memref<7x1024x64xf32>, %v: memref<7x1024x64xf32>, %out: memref<7x1024x64xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<7x1024x1024xf32>
  %max = memref.alloc() : memref<7x1024xf32>
  %exp = memref.alloc() : memref<7x1024x1024xf32>
  %sum = memref.alloc() : memref<7x1024xf32>
  affine.for %h = 0 to 7 {
    affine.for %i = 0 to 1024 {
      affine.for %j = 0 to 1024 {
        %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
          %x = affine.load %q[%h, %i, %d] : memref<7x1024x64xf32>
          %y = affine.load %k[%h, %j, %d] : memref<7x1024x64xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %scores[%h, %i, %j] : memref<7x1024x1024xf32>
      }
    }
  }
  affine.for %h = 0 to 7 {
    affine.for %i = 0 to 1024 {
      %m = affine.for %j = 0 to 1024 iter_args(%a = %low) -> (f32) {
        %x = affine.load %scores[%h, %i, %j] : memref<7x1024x1024xf32>
        %n = arith.maximumf %a, %x : f32
        affine.yield %n : f32
      }
      affine.store %m, %max[%h, %i] : memref<7x1024xf32>
    }
  }
  affine.for %h = 0 to 7 {
    affine.for %i = 0 to 1024 {
      affine.for %j = 0 to 1024 {
        %x = affine.load %scores[%h, %i, %j] : memref<7x1024x1024xf32>
        %m = affine.load %max[%h, %i] : memref<7x1024xf32>
        %e = arith.subf %x, %m : f32
        %p = math.exp %e : f32
        affine.store %p, %exp[%h, %i, %j] : memref<7x1024x1024xf32>
      }
    }
  }
  affine.for %h = 0 to 7 {
    affine.for %i = 0 to 1024 {
      %s = affine.for %j = 0 to 1024 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %exp[%h, %i, %j] : memref<7x1024x1024xf32>
        %n = arith.addf %a, %x fastmath<reassoc,contract> : f32
        affine.yield %n : f32
      }
      affine.store %s, %sum[%h, %i] : memref<7x1024xf32>
    }
  }
  affine.for %h = 0 to 7 {
    affine.for %i = 0 to 1024 {
      affine.for %d = 0 to 64 {
        %r = affine.for %j = 0 to 1024 iter_args(%a = %zero) -> (f32) {
          %x = affine.load %exp[%h, %i, %j] : memref<7x1024x1024xf32>
          %y = affine.load %v[%h, %j, %d] : memref<7x1024x64xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %a, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %s = affine.load %sum[%h, %i] : memref<7x1024xf32>
        %o = arith.divf %r, %s : f32
        affine.store %o, %out[%h, %i, %d] : memref<7x1024x64xf32>
      }
    }
  }
  return
}
