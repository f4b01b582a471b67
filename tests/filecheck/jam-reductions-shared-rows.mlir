// PASSES: normalize-nests,form-reductions,classify-nests,plan-contractions,jam-reductions
//
// Six rows with each of 512, all along memory: three sums at once read a row of the larger matrix
// once, and nothing is packed.

// CHECK-LABEL: @main
// CHECK:         affine.for %{{.*}} = 0 to 2 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 512 {
// CHECK:             affine.for %{{.*}} = 0 to 128 iter_args(%{{.*}}, %{{.*}}, %{{.*}}) -> (f32, f32, f32)
// CHECK-COUNT-3:       affine.load %arg0
// CHECK:             affine.store
// CHECK-NEXT:        affine.store
// CHECK-NEXT:        affine.store
// CHECK-NOT:     polyblocks.schedule
// CHECK:         return
#q = {role = "input", name = "q", dtype = "float32", shape = array<i64: 6, 128>, strides = array<i64: 128, 1>, constant = false, updates = -1 : i64}
#k = {role = "input", name = "k", dtype = "float32", shape = array<i64: 512, 128>, strides = array<i64: 128, 1>, constant = false, updates = -1 : i64}
#s = {role = "output", name = "s", dtype = "float32", shape = array<i64: 6, 512>, strides = array<i64: 512, 1>, constant = false, updates = -1 : i64}
func.func @main(%q: memref<6x128xf32> {polyblocks.arg = #q}, %k: memref<512x128xf32> {polyblocks.arg = #k},
                %s: memref<6x512xf32> {polyblocks.arg = #s}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 512 {
      %r = affine.for %d = 0 to 128 iter_args(%sum = %zero) -> f32 {
        %a = affine.load %q[%i, %d] : memref<6x128xf32>
        %b = affine.load %k[%j, %d] : memref<512x128xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %n = arith.addf %sum, %p fastmath<reassoc,contract> : f32
        affine.yield %n : f32
      }
      affine.store %r, %s[%i, %j] : memref<6x512xf32>
    }
  }
  return
}
