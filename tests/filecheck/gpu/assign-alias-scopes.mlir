// PASSES: assign-alias-scopes
//
// What is stored to one of several written arguments is in none of the others; a load through an
// unknown pointer may be anywhere, and what is only read says so itself.

// CHECK-DAG:   #[[DOMAIN:.*]] = #llvm.alias_scope_domain<
// CHECK-LABEL: llvm.func @two
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[ONE:.*]]], noalias_scopes = [#[[OTHER:.*]]]} : f32
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[OTHER]]], noalias_scopes = [#[[ONE]]]} : f32
// CHECK:         llvm.load %{{.*}} {alias_scopes = [#[[ONE]]], noalias_scopes = [#[[OTHER]]]} : !llvm.ptr<1>
// CHECK:         llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr<3>
// CHECK:         llvm.load %{{[a-z0-9]*}} : !llvm.ptr<1>

// One written argument is known to be apart from all others.
// CHECK-LABEL: llvm.func @one
// CHECK-NOT:     alias_scopes
gpu.module @kernels {
  llvm.func @two(%a: !llvm.ptr<1> {llvm.noalias, llvm.readonly}, %x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %s: !llvm.ptr<3>, %i: i64, %p: i1) attributes {gpu.kernel} {
    %v = llvm.load %a : !llvm.ptr<1> -> f32
    %xi = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %yi = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %v, %xi : f32, !llvm.ptr<1>
    llvm.store %v, %yi : f32, !llvm.ptr<1>
    %w = llvm.load %x : !llvm.ptr<1> -> f32
    llvm.store %w, %s : f32, !llvm.ptr<3>
    %either = llvm.select %p, %x, %y : i1, !llvm.ptr<1>
    %u = llvm.load %either : !llvm.ptr<1> -> f32
    llvm.store %u, %s : f32, !llvm.ptr<3>
    llvm.return
  }
  llvm.func @one(%a: !llvm.ptr<1> {llvm.noalias, llvm.readonly}, %x: !llvm.ptr<1>) attributes {gpu.kernel} {
    %v = llvm.load %a : !llvm.ptr<1> -> f32
    llvm.store %v, %x : f32, !llvm.ptr<1>
    llvm.return
  }
}
